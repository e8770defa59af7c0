import numpy as np
import numpy.typing as npt

from kraftlog._native.hashes import Values

Texts = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]

BASE64: int
HEX: int
JSON: int
CSV: int

def cell_texts(form: int, values: Values) -> Texts: ...
def timestamp_texts(microseconds: npt.NDArray[np.int64]) -> Texts: ...
