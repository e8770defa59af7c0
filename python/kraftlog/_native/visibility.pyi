import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

def visibility(
    first: _Ints,
    last: _Ints,
    end: _Ints,
    state: npt.NDArray[np.int8],
    markers: _Ints,
    headers: npt.NDArray[np.uint8],
    offsets: _Ints,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], _Ints]: ...
def stretch(
    headers: npt.NDArray[np.uint8], place: int, rows: int
) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, npt.NDArray[np.bool_], _Ints]: ...
