from kraftlog._native.chunk import Chunk
from kraftlog.errors import NativeFault
from kraftlog.types import Buffer, InputFile

WANT: dict[str, int]
ONLY_MARKERS: int
END: int
CHUNK_FULL: int
NEEDS_DECOMPRESSION: int
UNREADABLE: int
DECOMPRESSION_PADDING: int

class Decoder:
    torn_at: int
    position: int
    next_offset: int
    def __init__(
        self,
        buffer: Buffer | InputFile,
        start: int,
        end: int,
        want: int,
        *,
        check_crc: bool,
        include_control: bool,
        start_offset: int,
        end_offset: int,
        start_timestamp: int,
        chunk_rows: int,
        chunk_bytes: int,
        aborted: Buffer | None = None,
        aborted_by_offset: bool = False,
    ) -> None: ...
    def run(self) -> int: ...
    def failure(self) -> BaseException: ...
    def payload(self) -> tuple[memoryview, int, int]: ...
    def decompressed(self, buffer: Buffer, size: int) -> bool: ...
    def decompression_failed(self, limit: int | None = None) -> None: ...
    def take_faults(self) -> list[NativeFault]: ...
    def take_chunk(self) -> Chunk | None: ...
