"""One user's end of a test with several users: runs under that user's uid and passes requests on to that user's engine.

    python -I -S tenant.py CODE            one JSON request per line on standard input, one JSON answer per line

`{"op": "start"}` starts the engine, `{"op": "runs", "id": N}` reads the store, anything else is a request of the engine's socket.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])

from jostle import client, config
from jostle.errors import JostleError
from jostle.store.reads import Reader


def main() -> None:
    home = config.home()
    engine = None
    for line in sys.stdin:
        request = json.loads(line)
        op = request.pop("op")
        try:
            if op == "start":
                engine = client.connect(home, gpus=request["gpus"])
                answer = engine.call("up")
            elif op == "runs":
                answer = {"job": Reader(home).job(request["id"]), "runs": Reader(home).runs(request["id"])}
            elif op == "events":
                answer = {"events": [row for row in Reader(home).events() if row["kind"] == request["kind"]]}
            elif op == "states":
                answer = {"states": {row["id"]: row["state"] for row in Reader(home).jobs()}}
            else:
                assert engine is not None
                answer = engine.call(op, **request)
                if op == "down":
                    client.wait_gone(engine)
        except JostleError as e:
            answer = {"failed": str(e)}
        print(json.dumps({"uid": os.getuid(), **answer}), flush=True)


if __name__ == "__main__":
    main()
