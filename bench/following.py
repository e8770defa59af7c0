"""The last records of a partition, as ``--last`` shows them, beside the whole of it."""

from __future__ import annotations

import shutil

import corpus
import kraftlog
from material import Material
from rounds import Contender

LAST, WHOLE = "kraftlog.follow, last 10", "kraftlog, all records"
_ROWS = 10


def last(megabytes: float) -> list[Contender]:
    """Read the end of a partition of one segment."""
    m = Material(corpus.Workload(100, 64), megabytes)
    folder = corpus.CACHE / f"last-{megabytes:g}MB-{corpus.VERSION}" / "orders-0"
    if not folder.exists():
        folder.mkdir(parents=True)
        shutil.copyfile(m.path, folder / f"{0:020d}.log")
    columns = ["offset", "value"]

    def ended() -> None:
        rows = list(kraftlog.follow(folder, columns=columns, last=_ROWS).look())
        assert [at for batch in rows for at in batch["offset"].to_pylist()] == list(range(m.records - _ROWS, m.records))

    def whole() -> None:
        assert sum(batch.num_rows for batch in kraftlog.open(folder).records(columns)) == m.records

    return [Contender(name, run, m.size, m.size) for name, run in ((LAST, ended), (WHOLE, whole))]
