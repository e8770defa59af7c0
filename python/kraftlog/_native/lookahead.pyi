from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer

ENDED_DTYPE: np.dtype[Any]
PLACE_BITS: int

class Lookahead:
    position: int
    is_chain: bool
    first_unstable_place: int | None
    def __init__(self, opened: Iterable[tuple[int, int]], every: bool, check_all: bool) -> None: ...
    def begin(self, buffer: Buffer) -> None: ...
    def run(self, stop: int) -> tuple[bool, npt.NDArray[np.void]]: ...
    def open(self) -> list[tuple[int, int, int]]: ...
