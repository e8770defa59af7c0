"""Threads that must not wait for a disk or another thread, such as that of an event loop.

A switch to a thread that may wait takes as long as most answers of a server. So an answer is first tried where it must
not wait: what could wait raises WouldWait before anything has changed, and the whole is done again elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self, TypeVar, overload

Value = TypeVar("Value")


class WouldWait(BaseException):
    """A step that could wait, in a thread that must not; nothing has changed.

    It is no error, and nothing that handles errors may take it for one.
    """


class _Thread(threading.local):
    """What a thread may do.

    Attributes
    ----------
    bytes_left : int or None
        How many bytes it may still read from the page cache; None if it may wait.
    """

    bytes_left: int | None = None


_thread = _Thread()


@contextmanager
def without_waiting(most_bytes: int) -> Iterator[None]:
    """Let this thread read a number of cached bytes and take free locks, and nothing else, during a ``with`` block.

    Raises
    ------
    WouldWait
        From within the block.
    """
    _thread.bytes_left = most_bytes
    try:
        yield
    finally:
        _thread.bytes_left = None


def must_not_wait() -> bool:
    """Return whether this is a thread that must not wait."""
    return _thread.bytes_left is not None


def about_to_wait() -> None:
    """Announce a step that may take long.

    Raises
    ------
    WouldWait
        When this thread must not wait.
    """
    if _thread.bytes_left is not None:
        raise WouldWait


def reads_cached_only(size: int) -> bool:
    """Return whether the next bytes are read only if no disk has to be waited for; count them.

    Raises
    ------
    WouldWait
        When this thread must not wait, and may not read that many bytes.
    """
    left = _thread.bytes_left
    if left is None:
        return False
    if size > left:
        raise WouldWait
    _thread.bytes_left = left - size
    return True


class Lock:
    """A lock that its owner can take again; a thread that must not wait takes it only while it is free."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        """Take it.

        Raises
        ------
        WouldWait
            When another thread has it, and this thread must not wait.
        """
        if not self._lock.acquire(blocking=_thread.bytes_left is None):
            raise WouldWait

    def __exit__(self, *_: object) -> None:
        """Release it."""
        self._lock.release()


class slow_property(cached_property[Value]):  # noqa: N801
    """A cached property that may wait while it is computed, also for another thread that computes it."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Value: ...

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Value:
        """Compute it; afterwards it is an attribute, and this is not called."""
        if instance is not None:
            about_to_wait()
        return super().__get__(instance, owner)
