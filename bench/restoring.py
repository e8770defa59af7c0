"""A cluster that is restored, beside its partitions copied by cp; both are on disk when they end."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa

import corpus
import kraftlog
from kraftlog.backup.quorum import with_records, write_controller
from material import Material
from rounds import Contender

PARTITIONS = 4
BOTH = RESTORE, CP = "kraftlog.restore, {}", "cp and sync, {}"
ONE, THREE = "1 replica", "3 replicas"
REPLICAS = {ONE: 1, THREE: 3}


def restore(megabytes: float) -> list[Contender]:
    """Restore partitions of one segment, with checksums compared and index files made, on one node and on three."""
    m = Material(corpus.Workload(1000, 64), megabytes / PARTITIONS)
    home = Path(tempfile.mkdtemp(prefix="kraftlog-restore-", dir=m.path.parent))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    found = []
    for name, replicas in REPLICAS.items():
        source = _source(home / name.replace(" ", "-"), m.path, replicas)
        found += _contenders(name, source, home / "made", m.size * PARTITIONS * replicas, replicas)
    return found


def _source(home: Path, segment: Path, replicas: int) -> list[Path]:
    """Write a log directory, and the metadata log of a controller that knows of so many replicas."""
    with kraftlog.LogStore(home / "store") as store:
        store.create_topic("orders", PARTITIONS)
    at = kraftlog.open(home / "store").image()
    table = at.image.tables()["PartitionRecord"]
    others = {"replicas": [*range(1, replicas + 1)], "directories": [bytes(16)] * replicas}
    image = with_records(
        at.image,
        {"PartitionRecord": pa.Table.from_pylist([row | others for row in table.to_pylist()], table.schema)},
    )
    write_controller(home / "controller", replace(at, image=image), "a3JhZnRsb2ctYmVuY2htYQ", 100, bytes(16))
    folders = [home / "log" / f"orders-{partition}" for partition in range(PARTITIONS)]
    for folder in folders:
        folder.mkdir(parents=True)
        shutil.copyfile(segment, folder / f"{0:020d}.log")
    return [*folders, home / "controller" / "__cluster_metadata-0"]


def _contenders(name: str, source: list[Path], made: Path, size: int, replicas: int) -> list[Contender]:
    numbers = count()

    def target() -> Path:
        """Return a new place; what was made before goes."""
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        return made / str(next(numbers))

    def restored() -> None:
        kraftlog.restore(source, target(), nodes=replicas, topics=["orders"])

    def copied() -> None:
        place = target()
        for replica in range(replicas):
            (place / str(replica)).mkdir(parents=True)
            subprocess.run(["cp", "-r", *map(str, source[:-1]), str(place / str(replica))], check=True)
        subprocess.run(["sync", *map(str, place.glob("*/*/*.log"))], check=True)

    def check() -> None:
        place = target()
        done = kraftlog.restore(source, place, nodes=replicas, topics=["orders"])
        assert all(one.is_identical for one in done.partitions)
        logs = list(place.glob("node-*/logs-0/orders-*/*.log"))
        assert len(logs) == PARTITIONS * replicas
        assert len({path.stat().st_size for path in logs}) == 1

    contenders = [
        Contender(RESTORE.format(name), restored, size, size, check),
        Contender(CP.format(name), copied, size, size),
    ]
    for contender in contenders:
        contender.cpu_clock = None  # what counts is when it is on disk
    return contenders
