import numpy as np
import numpy.typing as npt

from kraftlog._native.chunk import Chunk

_Ints = npt.NDArray[np.int64]
_Outline = tuple[_Ints, tuple[int, int, int], int, int, bool, bool]

def visibility(
    first: _Ints,
    last: _Ints,
    end: _Ints,
    state: npt.NDArray[np.int8],
    markers: _Ints,
    headers: npt.NDArray[np.uint8],
    offsets: _Ints,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], _Ints]: ...
def marker_rows(chunk: Chunk, before: int) -> tuple[_Ints, _Ints, _Outline, bool]: ...
def marker_texts(
    chunk: Chunk, rows: _Ints
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]: ...
def outline(headers: npt.NDArray[np.uint8], batches: _Ints, offsets: _Ints, api_keys: _Ints) -> _Outline: ...
def stretch(
    headers: npt.NDArray[np.uint8], place: int
) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, npt.NDArray[np.bool_]]: ...
