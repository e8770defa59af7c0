"""Objects of the extension modules that were made without their ``__init__``: whatever is done with them raises."""

from __future__ import annotations

import subprocess
import sys

USES = """
import copy, importlib, pickle, pkgutil, sys
import kraftlog._native as native

class Odd:
    pass

ARGUMENTS = [(), (None,), (b"",), (b"12345678",), (0,), (1, 2), (None, 0, 0), (b"", 0, 0, 0), (Odd(), Odd())]


def use(thing):
    for call in (repr, len, iter, next, memoryview, bool, hash, copy.copy, copy.deepcopy, pickle.dumps):
        attempt(call, thing)
    for name in dir(thing):
        if name.startswith("__") and name not in ("__enter__", "__exit__", "__getitem__", "__call__"):
            continue
        print(name, file=sys.stderr)
        found = attempt(getattr, thing, name)
        for arguments in ARGUMENTS if callable(found) else ():
            attempt(found, *arguments)


def attempt(call, *arguments):
    try:
        return call(*arguments)
    except Exception:
        return None


made = 0
for module in pkgutil.iter_modules(native.__path__):
    for name, kind in vars(importlib.import_module(f"kraftlog._native.{module.name}")).items():
        if not isinstance(kind, type) or kind.__module__ != f"kraftlog._native.{module.name}":
            continue
        if issubclass(kind, BaseException):
            continue
        print(module.name, name, file=sys.stderr)
        thing = attempt(kind.__new__, kind)
        if thing is not None:
            made += 1
            use(thing)
            del thing
print(made)
"""


def test_whatever_is_done_with_them_raises():
    done = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.splitlines()[-3:]
    assert int(done.stdout) > 5
