from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Uuids = npt.NDArray[np.uint64]

UNKNOWN_TOPIC: int
UNKNOWN_PARTITION: int
BAD_DIRECTORIES: int
BAD_RECOVERY_STATE: int
LISTS: tuple[str, ...]
SCALARS: tuple[str, ...]
NONE: int

class PartitionRows:
    def __init__(self, batch: pa.RecordBatch, places: tuple[int, ...]) -> None: ...
    def __len__(self) -> int: ...

class TopicSlots:
    def copy(self) -> TopicSlots: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    def topics(self) -> tuple[Ints, Ints, Uuids]: ...
    def renumber_names(self, topics: Ints) -> None: ...
    def replay(
        self,
        topics: tuple[Ints, Uuids],
        first_name: int,
        cleared: Ints,
        removals: tuple[Ints, Uuids],
        partitions: PartitionRows,
        changes: PartitionRows,
        clearings: tuple[Ints, Ints],
        candidates: Ints,
        candidates_count: int,
    ) -> tuple[Ints, Ints]: ...
    def partitions(self, topics: Ints) -> dict[str, Any]: ...
