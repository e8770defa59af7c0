"""A streaming query without Spark, run micro-batch by micro-batch."""

from __future__ import annotations

import pickle
from pathlib import Path

from kraftlog.spark.follow import LogFollower, begun, reached
from kraftlog.spark.options import parse_request
from kraftlog.spark.rate_limit import rate_limited
from kraftlog.spark.still_there import read_what_is_there
from kraftlog.spark.stream_offsets import Offsets, as_json, from_json


class Query:
    """A query that keeps its offsets as a checkpoint does; the follower may be lost at any time."""

    def __init__(self, path: Path, **options: str) -> None:
        self.request = parse_request(
            {"paths": str(path), "startingOffsets": "earliest", "columns": "topic,partition,offset", **options},
            is_streaming=True,
        )
        self.follower = LogFollower(self.request)
        self.start = as_json(self.follower.starting())
        self.seen: list[tuple[str, int, int]] = []

    def restart(self) -> None:
        self.follower = LogFollower(self.request)

    def latest(self, limit: int | None = None) -> Offsets:
        bounds = self.follower.bounds()
        start = from_json(self.start)
        latest = reached(start, bounds)
        return latest if limit is None else rate_limited(limit, begun(start, bounds), latest)

    def rows(self, end: Offsets) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = []
        for part in self.follower.parts(from_json(self.start), end):
            for batch in read_what_is_there(self.request, pickle.loads(pickle.dumps(part))):
                found += [tuple(row.values()) for row in batch.to_pylist()]
        return found

    def run(self, limit: int | None = None) -> list[int]:
        """Run a micro-batch and return its offsets."""
        end = self.latest(limit)
        found = self.rows(end)
        self.seen += found
        self.start = as_json(end)
        return [offset for _, _, offset in found]
