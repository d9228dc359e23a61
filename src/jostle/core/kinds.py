"""What a value of a field may be. A kind knows whether a value will do, and what to say was expected; how people write it, in
files and options, is read by formats.spec by the kind's name.

Rules: light to import, for every command starts with it. A check takes any value that JSON can say and answers yes or no.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False  # not from typing, which costs more to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_GPUS = 1024
MAX_CPUS = 1 << 16
MAX_MIB = 1 << 30  # 1 PiB: a larger number is a slip, and would not fit the arithmetic of other programs
MAX_COUNT = 1 << 31
MAX_SECONDS = 100 * 365 * 86400.0  # a hundred years
MAX_INSTANT = 253_402_300_800.0  # s since the epoch: the end of the year 9999
MAX_ID = 1 << 62
MAX_PID = 1 << 22  # of Linux, whatever is set
MAX_NAME = 200
TARGET_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
MAX_TARGETS = 16  # each is tried at every tick
MAX_COUNTERS = 16
MAX_TEXT = 1 << 20


class Kind:
    __slots__ = ("check", "expected", "high", "low", "name", "unit", "words")

    def __init__(
        self, name: str, check: Callable[[Any], bool], expected: str, *,
        unit: str = "", low: int = 0, high: int = 0, words: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.check = check
        self.expected = expected  # "… must be" this
        self.unit = unit  # of the value inside: MiB, s, %
        self.low, self.high = low, high  # of numbers; of `retry` that of its max
        self.words = words  # of a choice: all of them; of a label: what it names


def is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def number(value: Any) -> bool:
    """One with which can be calculated: a whole number may be larger than all of those."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= MAX_ID


def seconds(value: Any) -> bool:
    return number(value) and 0 <= value <= MAX_SECONDS


def printable(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable()


def one_of(*words: str) -> Kind:
    return Kind("choice", lambda v: isinstance(v, str) and v in words, " or ".join(words), words=words)


def count(low: int, high: int, expected: str = "a whole number") -> Kind:
    return Kind("whole", lambda v: is_integer(v, low, high), expected, low=low, high=high)


def size(low: int) -> Kind:
    return Kind("size", lambda v: is_integer(v, low, MAX_MIB), "a positive whole number", unit="MiB", low=low, high=MAX_MIB)


def indices(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(is_integer(i, 0, MAX_GPUS) for i in value)


TRUTH = Kind("truth", lambda v: isinstance(v, bool), "true or false")
CARDS = count(0, MAX_GPUS)
PERCENT = Kind("percent", lambda v: is_integer(v, 0, 100), "a whole number", unit="%", high=100)
A_TIME = "a number of seconds, at most 100 years"
DURATION = Kind("duration", seconds, A_TIME, unit="s")
LIMIT = Kind("limit", seconds, A_TIME, unit="s")
SOME_TIME = Kind("limit", lambda v: seconds(v) and v > 0, A_TIME, unit="s")
INDICES = Kind("indices", indices, "indices of GPUs")
ATTEMPTS = Kind("attempts", lambda v: v is None or is_integer(v, 0, MAX_COUNT), "a whole number", high=MAX_COUNT)
RETRY = Kind("retry", lambda v: isinstance(v, dict), "an object with max, backoff_after and backoff only", high=MAX_COUNT)


# --- of a job


def utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def command(value: Any) -> bool:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        return False
    for part in parts:
        if not isinstance(part, str) or "\0" in part or len(part) > MAX_TEXT:
            return False
    return bool(parts[0].strip())


def two_counts(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    return pair and is_integer(value[0], 0, MAX_GPUS) and is_integer(value[1], value[0], MAX_GPUS)


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def target(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and set(value) <= TARGET_SIGNS and value[0] not in "_-."


def targets(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MAX_TARGETS and all(map(target, value)) and len(value) == len(set(value))


def amounts(value: Any, low: int, most: int) -> bool:
    if not isinstance(value, dict) or len(value) > most:
        return False
    return all(target(name) and is_integer(n, low, MAX_COUNT) for name, n in value.items())


def path(value: Any) -> bool:
    return isinstance(value, str) and value[:1] == "/" and "\0" not in value and (value.isascii() or utf8(value))


def variables(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and isinstance(v, str) and bool(key) and "=" not in key and "\0" not in key and "\0" not in v
        for key, v in value.items()
    )


def sweep_values(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) and utf8(text or "-") for pair in value.items() for text in pair)


def run_id(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(is_integer(n, 1, MAX_ID) for n in value)


def one_input(value: Any) -> bool:
    """A file that a job is made of: backends/local/inputs.py."""
    if not (isinstance(value, list) and len(value) == 3 and path(value[0])):
        return False
    digest, identity = value[1:]
    if not (digest is None or (isinstance(digest, str) and len(digest) == 64)):
        return False
    four = isinstance(identity, list) and len(identity) == 4
    return identity is None or (four and all(is_integer(n, -(1 << 63), 1 << 64) for n in identity))


def digest(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200


def one_process(value: Any) -> bool:
    """A process: its pid, the tick of its start, and the boot that both are of, which may be left out."""
    if not isinstance(value, list) or not 2 <= len(value) <= 3 or not all(map(digest, value[2:])):
        return False
    return is_integer(value[0], 1, MAX_PID) and is_integer(value[1], 0, MAX_ID)


NAME = Kind("label", printable, f"1 to {MAX_NAME} printable characters", words=("a name",))
QUEUE = Kind("label", lambda v: isinstance(v, str | int), "a text", words=("the name of a queue",))
TAGS = Kind("labels", texts, "a list of texts", words=("a tag",))
TARGETS = Kind("targets", targets,
               f"1 to {MAX_TARGETS} names of targets, each once: letters, digits, _, - and ., a letter or digit first",
               words=("the name of a target",))  # fmt: skip
COUNTERS = Kind("counters", lambda v: amounts(v, 1, MAX_COUNTERS),
                f"at most {MAX_COUNTERS} names (letters, digits, _, - and .), each with how many of it, at least 1",
                low=1)  # fmt: skip
COMMANDS = Kind("commands", lambda v: isinstance(v, list) and bool(v) and all(map(command, v)),
                "a list of at least one command: a text or a list of texts, not empty and without NUL")  # fmt: skip
GPUS = Kind("gpus", two_counts, f"[least, most] with 0 ≤ least ≤ most ≤ {MAX_GPUS}", high=MAX_GPUS)
ENV = Kind("env", variables, "names (without = and NUL) and their texts")
PATH = Kind("path", path, "an absolute path, in UTF-8: its name cannot be kept as it is otherwise")
NEEDS = Kind("needs", lambda v: isinstance(v, list), "a list of other jobs")
INSTANT = Kind("instant", lambda v: number(v) and 0 <= v <= MAX_INSTANT, "seconds since 1970, at most those of the year 9999")
JOB = Kind("job", lambda v: is_integer(v, 1, MAX_ID), "a job")
RUN = Kind("run", run_id, "[job, run]")
PROCESS = Kind("process", one_process, "[pid, start ticks, boot id]")
SWEEP_VALUES = Kind("values", sweep_values, "names and texts")
DIGEST = Kind("digest", digest, "a text")
INPUTS = Kind("inputs", lambda v: isinstance(v, list) and all(map(one_input, v)), "a list of [path, digest, stat]")

# --- of a settings file

DEVICES = Kind("devices", lambda v: isinstance(v, str), "a set of devices")
LOG_SIZE = Kind("mib", lambda v: number(v) and 0 <= v <= MAX_MIB, "a number", unit="MiB")
COUNTED = Kind("counters", lambda v: amounts(v, 0, 1024), "names (letters, digits, _, - and .), each with how many there are")
POLICY = Kind("policy", lambda v: isinstance(v, dict), "rules")
LIMITS = Kind("limits", lambda v: isinstance(v, dict), "limits")

# --- of notifications

CHANNELS = ("mail", "webhook", "feishu", "dingtalk", "wecom", "slack", "apprise")
NOTICES = ("failed", "finished", "batch", "free", "gpu", "resized", "idle")
MAX_CHANNELS = 16
MAX_LISTED = 50  # recipients, hosts
NO_ADDRESS = frozenset(" <>(),;:\"\\[]")


def secret(value: Any) -> bool:
    """Where a secret lies, never the secret itself."""
    one = isinstance(value, dict) and len(value) == 1 and set(value) <= {"file", "env"}
    return one and all(map(printable_text, value.values()))


def printable_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 4096 and value.isprintable()


def url(value: Any) -> bool:
    return secret(value) or (printable_text(value) and value.startswith(("http://", "https://")))


def mail_address(value: Any) -> bool:
    if not (printable_text(value) and len(value) <= 254 and value.isascii() and not NO_ADDRESS & set(value)):
        return False
    name, _, host_name = value.rpartition("@")
    return bool(name) and "@" not in name and host(host_name)


def host(value: Any) -> bool:
    """A name or an address, without a port."""
    plain = printable_text(value) and len(value) <= 253 and value.isascii()
    return plain and not set(value) & set(" /@?#\\%") and value[0] != "-"


def some(value: Any, check: Callable[[Any], bool], most: int = MAX_LISTED) -> bool:
    return isinstance(value, list) and 0 < len(value) <= most and all(map(check, value)) and len(value) == len(set(value))


SECRET = Kind("secret", secret, "{file: PATH} or {env: NAME}, where the secret is to be found")
URL = Kind("url", url, "an address such as https://…, or where it is to be found: {file: PATH} or {env: NAME}")
HOST = Kind("host", host, "the name or address of a host")
HOSTS = Kind("hosts", lambda v: v == [] or some(v, host), f"up to {MAX_LISTED} names or addresses of hosts")
MAIL = Kind("mail", mail_address, "a mail address such as me@example.org")
MAILS = Kind("mails", lambda v: some(v, mail_address), f"1 to {MAX_LISTED} mail addresses, each once")
NOTICE_KINDS = Kind("words", lambda v: some(v, lambda word: word in NOTICES), "some of " + ", ".join(NOTICES), words=NOTICES)
METRICS = Kind("metrics", lambda v: v == [] or some(v, lambda text: printable_text(text) and text[0] != "-"),
               "a list of metrics such as accuracy or loss=REGEX")  # fmt: skip
CHANNEL_TABLE = Kind("channels", lambda v: isinstance(v, dict), f"up to {MAX_CHANNELS} channels, each under its name")
NOTIFY = Kind("notify", lambda v: isinstance(v, dict), "settings of notifications")
