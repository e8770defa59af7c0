from collections.abc import Callable
from typing import Any

COLUMNS: dict[str, int]
MOST_NAMED_ROWS: int
SHARED_ROWS: int
TIMESTAMP_TYPES: list[str]

class Chunk:
    rows: int
    capacity: int
    batches: memoryview
    offsets: memoryview
    timestamps_ms: memoryview
    control_types: memoryview
    def to_array(self, column: int, take: Callable[[int, Any], Any], kind: Any) -> Any: ...
    def to_record_batch(
        self,
        columns: tuple[int, ...],
        take: Callable[[int, Any], Any],
        arrow_schema: Any,
        start: int = 0,
        most: int = 2**63 - 1,
    ) -> Any: ...
