from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.errors import NativeFault
from kraftlog.types import Buffer

HEADER_DTYPE: np.dtype[Any]

class Scanner:
    torn_at: int
    position: int
    def __init__(self, buffer: Buffer, start: int, end: int, check_crc: bool) -> None: ...
    def run(self, max_batches: int) -> tuple[npt.NDArray[np.void], bool, NativeFault | None]: ...
