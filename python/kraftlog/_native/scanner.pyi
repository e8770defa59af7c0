from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.errors import NativeFault
from kraftlog.types import Buffer, InputFile

HEADER_DTYPE: np.dtype[Any]
LOG_OVERHEAD: int
RECORD_BATCH_OVERHEAD: int
COMPRESSION_MASK: int
TIMESTAMP_TYPE_BIT: int
TRANSACTIONAL_BIT: int
CONTROL_BIT: int
DELETE_HORIZON_BIT: int
LAST_COMPRESSION: int
CHECK_LENGTH: int
CHECK_ALL: int
CHECK_CONTROL: int

def header_at(buffer: Buffer | InputFile, position: int) -> npt.NDArray[np.void]: ...

class Scanner:
    size: int
    torn_at: int
    position: int
    salvaged_at: int
    def __init__(self, buffer: Buffer | InputFile, start: int, end: int, check: int, salvage: bool = False) -> None: ...
    def skip(self, least: int) -> int | None: ...
    def run(self, max_batches: int) -> tuple[npt.NDArray[np.void], bool, NativeFault | BaseException | None]: ...
