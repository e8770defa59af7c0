"""How many of the unread offsets a micro-batch takes: the rules of Spark's Kafka source."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from kraftlog.spark.offsets import Partition
from kraftlog.spark.stream_offsets import Offsets


def rate_limited(limit: int, start: Mapping[Partition, int], latest: Mapping[Partition, int]) -> Offsets:
    """Split a number of offsets over partitions in proportion to the unread offsets of each.

    A share is rounded down, but a partition with unread offsets gets at least one.

    Parameters
    ----------
    limit : int
        ``maxOffsetsPerTrigger``.
    start : mapping of Partition to int
        Where the micro-batch begins, for each partition of ``latest``.
    latest : mapping of Partition to int
        Where the log ends.

    Returns
    -------
    dict of Partition to int
        Where the micro-batch ends.

    Examples
    --------
    >>> rate_limited(10, {("orders", 0): 0, ("orders", 1): 5}, {("orders", 0): 90, ("orders", 1): 15})
    {('orders', 0): 9, ('orders', 1): 6}
    """
    waiting = {partition: max(0, end - start[partition]) for partition, end in latest.items()}
    total = sum(waiting.values())
    return {
        partition: min(end, start[partition] + _share(limit, waiting[partition], total)) if waiting[partition] else end
        for partition, end in latest.items()
    }


def _share(limit: int, waiting: int, total: int) -> int:
    share = limit * (waiting / total)
    return math.ceil(share) if share < 1 else math.floor(share)


class TriggerDelay:
    """Whether to skip a trigger: ``minOffsetsPerTrigger`` and ``maxTriggerDelay``.

    The first trigger of a run never is.

    Parameters
    ----------
    min_offsets : int
    max_delay_ms : int
        Milliseconds after which a trigger is taken however few offsets are unread.
    clock : callable, optional
        A monotonic clock, in seconds.
    """

    def __init__(self, min_offsets: int, max_delay_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._min_offsets = min_offsets
        self._max_delay_ms = max_delay_ms
        self._clock = clock
        self._taken_at = -math.inf

    def passes_over(self, start: Mapping[Partition, int], latest: Mapping[Partition, int]) -> bool:
        """Whether there are too few unread offsets between two places, and the delay is not over.

        A log whose end went back does not wait: the loss must be reported.
        """
        is_over = (self._clock() - self._taken_at) * 1000 >= self._max_delay_ms
        waiting = [end - start[partition] for partition, end in latest.items()]
        if not is_over and min(waiting, default=0) >= 0 and sum(waiting) < self._min_offsets:
            return True
        self._taken_at = self._clock()
        return False
