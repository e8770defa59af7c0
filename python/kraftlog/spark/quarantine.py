"""The faults of a read as a second table: a folder with one Parquet file for each part with faults."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from kraftlog.errors import Fault
from kraftlog.spark.paths import local_folder
from kraftlog.stream import errors_table

NO_ROWS = "no-rows.parquet"


def make_quarantine(folder: str) -> None:
    """Make the folder unless it exists, and keep its content.

    It has a file without rows even if there are no faults, so that the folder can always be read as a table.

    Parameters
    ----------
    folder : str
        Executors must see it, too. Each read needs its own folder.
    """
    path = local_folder("quarantinePath", folder)
    path.mkdir(parents=True, exist_ok=True)
    if not (path / NO_ROWS).exists():
        _write(path / NO_ROWS, [])


def begin_quarantine(folder: str) -> None:
    """Delete the files of an earlier read from the folder, and make it as ``make_quarantine`` does.

    Parameters
    ----------
    folder : str
    """
    make_quarantine(folder)
    path = local_folder("quarantinePath", folder)
    for old in [*path.glob("part-*.parquet"), *path.glob(".unfinished-*")]:
        old.unlink()


def put_aside(folder: str, name: str, faults: list[Fault]) -> None:
    """Replace the faults that an earlier read of the same part left there.

    Parameters
    ----------
    folder : str
    name : str
        A name of the part that no other part in this folder ever has.
    faults : list of Fault
    """
    path = local_folder("quarantinePath", folder) / f"part-{name}.parquet"
    if faults:
        _write(path, faults)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, faults: list[Fault]) -> None:
    """Write the table errors; concurrent attempts of one task use different files."""
    import pyarrow.parquet as pq

    unfinished = path.with_name(f".unfinished-{uuid4().hex}")
    pq.write_table(errors_table(faults), unfinished)
    unfinished.replace(path)
