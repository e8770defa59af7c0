from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]
_Uuids = npt.NDArray[np.uint64]

UNKNOWN_TOPIC: int
UNKNOWN_PARTITION: int
BAD_DIRECTORIES: int
BAD_RECOVERY_STATE: int
LISTS: tuple[str, ...]
SCALARS: tuple[str, ...]
NONE: int

class PartitionRows:
    def __init__(self, batch: Any, places: tuple[int, ...]) -> None: ...
    def __len__(self) -> int: ...

class TopicSlots:
    def copy(self) -> TopicSlots: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    def topics(self) -> tuple[_Ints, _Ints, _Uuids]: ...
    def renumber_names(self, topics: _Ints) -> None: ...
    def replay(
        self,
        topics: tuple[_Ints, _Uuids],
        first_name: int,
        cleared: _Ints,
        removals: tuple[_Ints, _Uuids],
        partitions: PartitionRows,
        changes: PartitionRows,
        clearings: tuple[_Ints, _Ints],
        candidates: _Ints,
        candidates_count: int,
        groups: _Ints,
    ) -> tuple[_Ints, _Ints]: ...
    def partitions(self, topics: _Ints) -> dict[str, Any]: ...
    def begin_notes(self, is_noting: bool = ...) -> None: ...
    def notes(self) -> dict[str, npt.NDArray[Any]]: ...
    def noted_partitions(self, notes: _Ints) -> dict[str, Any]: ...
    def names_of(self, ids: _Uuids) -> _Ints: ...
    def partitions_at(
        self, ids: _Uuids, partitions: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.bool_], dict[str, Any]]: ...
