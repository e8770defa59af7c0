from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kraftlog._native.encoder import Source
from kraftlog.types import Buffer

class Builder:
    def __init__(self, max_batch_bytes: int, attributes: int, timestamp_ms: int) -> None: ...
    @property
    def records_count(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    def append(
        self,
        key: Buffer | str | None = None,
        value: Buffer | str | None = None,
        headers: Mapping[str, Buffer | str | None] | Iterable[tuple[str, Buffer | str | None]] | None = None,
        timestamp_ms: int | None = None,
    ) -> bool: ...
    def _write(self, sources: Iterable[Source]) -> int: ...
    def _close(
        self,
        base_offset: int,
        partition_leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        attributes: int,
        finish: Callable[[memoryview], Buffer],
    ) -> Any: ...
