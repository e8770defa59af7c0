"""Work by threads that run ahead, with results in the order of what they are the results of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

SEGMENTS_AT_ONCE = 16  # whose headers are looked at: what takes long is the disk, or the network

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = 0
) -> Iterator[Result]:
    """Return what a function makes of each item.

    Parameters
    ----------
    work : callable
        Is called by threads. What it raises is raised when its turn comes.
    items : iterable
        Gone over by the caller's thread, as far as is needed.
    threads : int
        How many there are at most; so many items are worked on at the same time.
    ahead : int
        How many more results may wait for their turn.

    Examples
    --------
    >>> from kraftlog.disk.in_order import in_order
    >>> list(in_order(len, ["a", "bcd", ""], threads=2))
    [1, 3, 0]
    """
    pending: deque[Future[Result]] = deque()
    todo = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                pending.extend(pool.submit(work, item) for item in islice(todo, threads + ahead - len(pending)))
                if not pending:
                    return
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
