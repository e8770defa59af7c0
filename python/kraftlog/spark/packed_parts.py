"""Small parts that one task reads together, so that a log of many small segments does not become as many tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftlog.spark.parts import DEFAULT_RANGE_BYTES, Part
from kraftlog.spark.request import Request
from kraftlog.spark.task import size_of

OPEN_BYTES = 4 << 20  # what it costs to open a file, in bytes of log: spark.sql.files.openCostInBytes
USUAL_TASKS = 200  # below this number parts stay alone: a cluster may have as many cores


def packed(request: Request, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Return what each task reads: consecutive parts that together are not larger than a range, or one part.

    Parameters
    ----------
    request : Request
        Its ``range_bytes`` and ``min_partitions`` are limits.
    parts : sequence of Part
        The whole plan, in order.
    """
    costs = [size_of(part) + OPEN_BYTES for part in parts]
    limit = min(request.range_bytes or DEFAULT_RANGE_BYTES, sum(costs) // max(USUAL_TASKS, request.min_partitions))
    tasks = list(_together(parts, costs, limit))
    return tasks if len(tasks) >= request.min_partitions else [(part,) for part in parts]


def _together(parts: Sequence[Part], costs: Sequence[int], limit: int) -> Iterator[tuple[Part, ...]]:
    task: list[Part] = []
    cost_of_task = 0
    for part, cost in zip(parts, costs, strict=True):
        if task and cost_of_task + cost > limit:
            yield tuple(task)
            task, cost_of_task = [], 0
        task.append(part)
        cost_of_task += cost
    if task:
        yield tuple(task)
