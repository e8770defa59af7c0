"""Files in a folder for each day or hour of the timestamps of records, with names as Hive has them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.cli.output import Writer

DAY, HOUR = "day", "hour"
UNITS = {DAY: 86_400_000, HOUR: 3_600_000}  # milliseconds
NO_TIMESTAMP = -1
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # readers of such folders take it for null
TIMESTAMP_COLUMN = "timestamp_ms"
MOST_OPEN_FILES = 16
_NONE = int(np.iinfo(np.int64).min)  # the number of the folder for records without a timestamp


class TimeFolders:
    """Writes rows to files in folders of days or hours, in UTC; at most ``MOST_OPEN_FILES`` are open.

    A folder has ``records.parquet``, and further files if its rows are far apart among those of many other folders. A
    file gets its name when it is complete; none of the open ones does if the ``with`` block raises.

    Parameters
    ----------
    folder : Path
    unit : {"day", "hour"}
    file_name : str
    opened : callable
        Opens the writer of a new file; its folder does not exist yet.

    Attributes
    ----------
    files : int
        Files that were opened.
    """

    def __init__(
        self, folder: Path, unit: str, file_name: str, opened: Callable[[Path], AbstractContextManager[Writer]]
    ) -> None:
        self._folder, self._unit, self._file_name = folder, unit, file_name
        self._opened = opened
        self._writers: OrderedDict[int, tuple[ExitStack, Writer]] = OrderedDict()  # the least recently used first
        self._counts: dict[int, int] = {}  # files of a folder
        self.files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        every = ExitStack()
        for one, _ in self._writers.values():
            every.push(one)
        self._writers.clear()
        every.__exit__(kind, error, traceback)

    def write(self, rows: pa.RecordBatch, timestamps: pa.Array) -> None:
        """Write rows, with their timestamps in milliseconds."""
        for number, some in _by_time(timestamps.to_numpy(), UNITS[self._unit]):
            chosen = rows if len(some) == rows.num_rows else rows.take(pa.array(some))
            self._writer(number).write(chosen)

    def _writer(self, number: int) -> Writer:
        if number not in self._writers:
            if len(self._writers) == MOST_OPEN_FILES:
                _, (oldest, _) = self._writers.popitem(last=False)
                oldest.close()
            count = self._counts.get(number, 0)
            name = Path(self._file_name)
            path = (
                self._folder
                / folder_name(number, self._unit)
                / (f"{name.stem}-{count}{name.suffix}" if count else name)
            )
            stack = ExitStack()
            self._writers[number] = stack, stack.enter_context(self._opened(path))
            self._counts[number] = count + 1
            self.files += 1
        self._writers.move_to_end(number)
        return self._writers[number][1]


def folder_name(number: int, unit: str) -> str:
    """Return the folder of a day or an hour, by its number since the epoch.

    Examples
    --------
    >>> folder_name(20_783, "day"), folder_name(20_783 * 24 + 7, "hour")
    ('day=2026-11-26', 'day=2026-11-26/hour=07')
    """
    if number == _NONE:
        return f"day={NO_VALUE}" if unit == DAY else f"day={NO_VALUE}/hour={NO_VALUE}"
    day, hour = (number, 0) if unit == DAY else divmod(number, 24)
    name = f"day={np.datetime64(day, 'D')}"
    return name if unit == DAY else f"{name}/hour={hour:02}"


def _by_time(timestamps: npt.NDArray[np.int64], size: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Return the numbers of the days or hours, in the order of their first rows, and the rows of each."""
    numbers = np.where(timestamps == NO_TIMESTAMP, _NONE, timestamps // size)
    distinct, first, of_row = np.unique(numbers, return_index=True, return_inverse=True)
    for at in np.argsort(first):
        yield int(distinct[at]), np.flatnonzero(of_row == at)
