from typing import Self

from kraftlog._native.chunk import Chunk
from kraftlog._native.compression import Decompressor
from kraftlog._native.lookahead import Lookahead
from kraftlog.errors import NativeFault
from kraftlog.types import Buffer, InputFile

WANT: dict[str, int]
ONLY_MARKERS: int
EVERY_BATCH: int
FROM_HEADERS: int
HEADER_COLUMNS: int
VIEWS: int
END: int
CHUNK_FULL: int
UNREADABLE: int
NEEDS_TRANSACTIONS: int
TEXT_BYTES: int

class Texts:
    def __init__(self, texts: tuple[tuple[int, bytes, int, int], ...], ignores_case: bool) -> None: ...

class Rules:
    def __init__(
        self,
        want: int,
        *,
        check_crc: bool,
        include_control: bool,
        strict: bool,
        salvage: bool,
        start_offset: int,
        end_offset: int,
        start_timestamp: int,
        texts: Texts | None = None,
    ) -> None: ...

class Decoder:
    torn_at: int
    hidden_records: int
    salvaged_at: int
    position: int
    reached: tuple[int, int]
    has_faults: bool
    def __new__(
        cls,
        buffer: Buffer | InputFile,
        start: int,
        end: int,
        rules: Rules,
        chunk_rows: int,
        chunk_bytes: int,
        decompressor: Decompressor,
        aborted: Buffer | None = None,
        aborted_by_offset: bool = False,
        lookahead: Lookahead | None = None,
        pieces: Buffer | None = None,
    ) -> Self: ...
    def run(self) -> int: ...
    def failure(self) -> BaseException: ...
    def take_faults(self) -> list[tuple[NativeFault, str]]: ...
    def take_piece_ends(self) -> tuple[memoryview, list[tuple[int, NativeFault, str]]]: ...
    def take_chunk(self) -> Chunk | None: ...
