"""An exception at a chosen line, as the handler of a signal raises it, or an allocation that fails."""

from __future__ import annotations

import dis
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import kraftlog
from kraftlog.log_store.errors import StoreError

_PACKAGE = str(Path(kraftlog.__file__).parent)
_ROOM = ("CALL", "PRECALL", "BINARY", "COMPARE", "FOR_ITER", "CONTAINS", "BUILD_", "LIST_", "BEFORE_WITH")


class UnexpectedError(Exception):
    """What no code expects."""


NEVER = 1 << 30  # a line that no work has
_functions: list[str] = []  # of each line of the work that was done last, up to the exception


class At:
    """Raises in the n-th line of the package that the tracing thread comes to."""

    def __init__(self, number: int, error: type[BaseException]) -> None:
        self.left = number
        self.place = ""
        self._error = error
        _functions.clear()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line" and not self.place and frame.f_lineno in _places(frame.f_code):
            if leaves_with(frame) or _is_in_finalizer(frame):
                return self
            self.left -= 1
            _functions.append(f"{frame.f_code.co_filename} {frame.f_code.co_name}")
            if self.left < 0:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise self._error
        return self


def interrupted(number: int, error: type[BaseException], work: Callable[[], object]) -> tuple[str, object]:
    """Do some work, with an exception at its n-th line; return where that was, and what came out of it."""
    at, told = At(number, error), object()
    before = sys.gettrace()
    sys.settrace(at)
    try:
        told = work()
    except (error, StoreError) as raised:
        told = raised
    finally:
        sys.settrace(before)
    return at.place, told


@cache
def _places(code: CodeType) -> frozenset[int]:
    """Return the lines in which something is called or allocated: in others no handler runs, and nothing fails."""
    found, line = set(), 0
    for each in dis.get_instructions(code):
        line = each.starts_line or line
        if each.opname.startswith(_ROOM):
            found.add(line)
    return frozenset(found)


def leaves_with(frame: FrameType) -> bool:
    """Whether a ``with`` block is about to be left: the call of ``__exit__`` is one step with the line before it."""
    following = [each.opname for each in _steps(frame.f_code) if each.offset >= frame.f_lasti][:4]
    return following.count("LOAD_CONST") >= 3


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Whether an exception would come to nobody: Python prints those of ``__del__``, and goes on."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@cache
def _steps(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def chosen_lines(config: pytest.Config, name: str, judged: Callable[[int], str], sample: int) -> None:
    """Judge an exception at every line of some work with --all-cases, else at one line of some of its functions.

    Parameters
    ----------
    config : pytest.Config
    name : str
        Of the work, for the sample.
    judged : callable
        Takes the number of a line; returns what it is, empty when the work has fewer lines.
    sample : int
        How many functions a run takes.
    """
    assert not judged(NEVER)
    assert not judged(NEVER + 1)  # without what is done once in a process
    functions = list(_functions)
    numbers = list(range(len(functions)))
    if not config.getoption("--all-cases"):
        dice = random.Random(f"{config.getoption('--sample-seed')} {name}")
        dice.shuffle(numbers)
        numbers = list({functions[number]: number for number in numbers}.values())[:sample]
    reached = sum(bool(judged(number)) for number in numbers)
    assert reached > len(numbers) // 2
