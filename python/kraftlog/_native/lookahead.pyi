from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer, InputFile

OPEN_DTYPE: np.dtype[Any]
ENDED_DTYPE: np.dtype[Any]

class Lookahead:
    position: int
    damaged_markers: int
    def __init__(self, buffer: Buffer | InputFile, check_all: bool) -> None: ...
    def run(self, stop: int) -> tuple[bool, npt.NDArray[np.void]]: ...
    def open(self) -> npt.NDArray[np.void]: ...
