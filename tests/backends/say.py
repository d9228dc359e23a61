"""say.py UNI_ID STATE PID [ERROR_TYPE]: writes the uni_id file as people's scripts do, in place and without a lock."""

import json
import sys

path = "script_process/uni_id.json"
uni_id, state, pid, *kind = sys.argv[1:]
try:
    with open(path) as f:
        data = json.load(f)
except (OSError, ValueError):
    data = {}
record = data.setdefault(uni_id, {})
record["pid"], record["state"] = int(pid), state
record.pop("error_type", None)
if kind:
    record["error_type"] = kind[0]
with open(path, "w") as f:
    json.dump(data, f, indent=2)
