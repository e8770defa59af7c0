"""What a read could not read, put aside as a second table: a folder with one Parquet file for each part with faults."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from kraftlog.errors import Fault
from kraftlog.spark.paths import local_folder
from kraftlog.stream import errors_table

NO_ROWS = "no-rows.parquet"


def make_quarantine(folder: str) -> None:
    """Make the folder where it is not there yet, and leave what is in it.

    A file without rows is there even when nothing is wrong, so that the folder can always be read as a table.

    Parameters
    ----------
    folder : str
        Which executors must see, too. A read needs one of its own.
    """
    path = local_folder("quarantinePath", folder)
    path.mkdir(parents=True, exist_ok=True)
    if not (path / NO_ROWS).exists():
        _write(path / NO_ROWS, [])


def begin_quarantine(folder: str) -> None:
    """Empty the folder of what an earlier read put there, and make it as ``make_quarantine`` does.

    Parameters
    ----------
    folder : str
    """
    make_quarantine(folder)
    path = local_folder("quarantinePath", folder)
    for old in [*path.glob("part-*.parquet"), *path.glob(".unfinished-*")]:
        old.unlink()


def put_aside(folder: str, name: str, faults: list[Fault]) -> None:
    """Put the faults of one part in the place of those that an earlier reading of it left there.

    Parameters
    ----------
    folder : str
    name : str
        Of the part; no other part that is ever put aside there has it.
    faults : list of Fault
    """
    path = local_folder("quarantinePath", folder) / f"part-{name}.parquet"
    if faults:
        _write(path, faults)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, faults: list[Fault]) -> None:
    """Write the table errors; attempts of one task that run at the same time do not meet."""
    import pyarrow.parquet as pq

    unfinished = path.with_name(f".unfinished-{uuid4().hex}")
    pq.write_table(errors_table(faults), unfinished)
    unfinished.replace(path)
