"""A partition that is extracted, beside its folder copied by cp; both are on disk when they end."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import kraftlog
from compare.processes import Peers
from material import Material
from rounds import Contender

EXTRACT, CP = "kraftlog.extract", "cp, and sync"


def extract(m: Material, peers: Peers) -> list[Contender]:
    """Copy a partition of one segment, with checksums compared and index files made."""
    home = Path(tempfile.mkdtemp(prefix="kraftlog-extract-", dir=m.path.parent))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    log = home / "log"
    (log / "orders-0").mkdir(parents=True)
    segment = log / "orders-0" / f"{0:020d}.log"
    shutil.copyfile(m.path, segment)
    numbers = count()

    def target() -> Path:
        """Return a new place; what was made before goes."""
        number = next(numbers)
        shutil.rmtree(home / f"copy-{number - 1}", ignore_errors=True)
        return home / f"copy-{number}"

    def extracted() -> None:
        kraftlog.extract(log, target())

    def copied() -> None:
        place = target()
        subprocess.run(["cp", "-r", str(log), str(place)], check=True)
        subprocess.run(["sync", str(place / "orders-0" / segment.name)], check=True)

    def check() -> None:
        place = target()
        kraftlog.extract(log, place)
        assert (place / "orders-0" / segment.name).read_bytes() == segment.read_bytes()

    contenders = [Contender(EXTRACT, extracted, m.size, m.size, check), Contender(CP, copied, m.size, m.size)]
    for contender in contenders:
        contender.cpu_clock = None  # what counts is when it is on disk
    return contenders
