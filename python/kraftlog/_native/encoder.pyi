from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

from kraftlog._native.text_column import ListColumn, TextColumn
from kraftlog.errors import NativeFault
from kraftlog.types import Buffer

Failure = tuple[int, int, int, int, int]

TIME_UNITS: dict[str, int]

class Source:
    def __new__(cls, rows: int) -> Self: ...
    @property
    def rows(self) -> int: ...
    @property
    def data_bytes(self) -> int: ...
    def set_key(self, column: TextColumn, first: int) -> None: ...
    def set_value(self, column: TextColumn, first: int) -> None: ...
    def set_timestamp(self, data: Buffer, offset: int, unit: int) -> None: ...
    def set_headers(self, lists: ListColumn, first: int, keys: TextColumn, values: TextColumn) -> None: ...

class Encoder:
    def __new__(
        cls,
        *,
        base_offset: int,
        partition_leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        attributes: int,
        max_batch_bytes: int,
        max_batch_records: int,
        batch_records: npt.NDArray[np.int32] | None,
        refuse_markers: bool,
        timestamp_ms: int,
    ) -> Self: ...
    timestamp_ms: int
    def __enter__(self) -> Encoder: ...
    def __exit__(self, *_: object) -> None: ...
    def write(self, sources: Iterable[Source], data_bytes: int, rows: int) -> Failure | None: ...
    def write_lists(
        self,
        sources: Iterable[Source],
        ends: npt.NDArray[np.int64],
        rows: int,
        begin_markers: Source | None = None,
        end_markers: Source | None = None,
    ) -> memoryview | None: ...
    def write_marker(self, value: bytes) -> Failure | None: ...
    def close_batch(self) -> None: ...
    def take(self) -> memoryview: ...

def rewrite_batches(
    buffer: Buffer,
    base_offset: int | None,
    partition_leader_epoch: int | None,
    is_log_append_time: bool | None,
    max_timestamp: int | None,
) -> tuple[int, NativeFault | None]: ...
