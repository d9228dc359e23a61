"""For all tests. What Hypothesis tries is the same each time, and takes as long as it takes on a slow or busy host. What whoever
runs them hands down is the same everywhere: a shell's `&`, nohup or a CI's runner makes nobody deaf to signals."""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("jostle", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("jostle")

for number, usual in (
    (signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL), (signal.SIGCHLD, signal.SIG_DFL),
):  # fmt: skip
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
for name in list(os.environ):  # nor does it change where things lie, how much is told, or in which language
    ours = name.startswith("JOSTLE_") and name != "JOSTLE_GOLDEN"
    if ours or name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "LANGUAGE"):
        del os.environ[name]
os.umask(0o022)
