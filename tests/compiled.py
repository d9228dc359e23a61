"""C that tests need: built once per test run; a test that needs it is skipped, with a line, where there is no compiler."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile

import pytest


@functools.cache
def library(source: str, name: str, *flags: str) -> str:
    """The path of a shared library with this name, in a directory of its own."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip(f"no C compiler (cc, gcc or clang): {os.path.basename(source)} cannot be built")
    path = tempfile.mkdtemp(prefix="jostle-tests-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    target = os.path.join(path, name)
    strict = ["-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([compiler, *strict, *flags, "-o", target, source], check=True, timeout=60)
    return target
