"""The names of topics by id, from the folders of their partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.checkpoints import read_properties
from kraftlog.layout.names import PARTITION_METADATA
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import located


class TopicNames(Mapping[str, str]):
    """The topics of segments; one ``partition.metadata`` of each is read at the first request.

    Parameters
    ----------
    segments : sequence of Segment
    faults : list of Fault
        Receives unreadable files.
    """

    def __init__(self, segments: Sequence[Segment], faults: list[Fault]) -> None:
        self._segments = segments
        self._faults = faults

    def __getitem__(self, topic_id: str) -> str:
        return self._names[topic_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        named: set[str] = set()
        for segment in {one.folder: one for one in self._segments}.values():
            if segment.topic is None or segment.topic in named:
                continue
            try:
                topic_id = read_properties(segment.folder / PARTITION_METADATA).get("topic_id")
            except FileNotFoundError:  # a copy of log files alone
                continue
            except (OSError, CorruptRecordError) as error:
                self._faults.append(located(segment, Fault("bad_checkpoint", str(error))))
                continue
            if topic_id is not None:
                names[topic_id] = segment.topic
                named.add(segment.topic)
        return names
