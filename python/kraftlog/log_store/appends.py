"""Tells listeners that a partition has grown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kraftlog.log_store.transaction_state import TopicPartition

Listener: TypeAlias = Callable[[TopicPartition], None]


class Appends:
    """The listeners for appends to the partitions of a store.

    They are called by the thread that has appended, which may hold locks: a listener only notes the partition.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def listen(self, listener: Listener) -> None:
        """Call a listener after each append from now on."""
        self._listeners = (*self._listeners, listener)

    def forget(self, listener: Listener) -> None:
        """Call a listener no more."""
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def notify(self, key: TopicPartition) -> None:
        """Tell all listeners of an append to a partition."""
        for listener in self._listeners:
            listener(key)
