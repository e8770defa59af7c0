"""An audit of a directory whose broker runs: files are replaced and deleted while it reads them."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from audit_replicas import batch, replica
from kraftlog.audit import audit
from kraftlog.audit.against import findings_against
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Severity
from kraftlog.backup.loss_ledger import LEDGER_FILE, write_loss_ledger
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
)
from kraftlog.read.log_pass import Pass
from stopped_broker import Broker

NEVER = -1
CLEANED, RUNNING = "cleaned", "running"  # states of the first broker
OTHER_ID = "AAAAAAAAAAEAAAAAAAAAAQ"
Change = Callable[[Path], None]


class LiveDisk(Disk):
    """The real disk; before the access to a file or folder with a number, something changes."""

    def __init__(self, at: int, change: Callable[[], None]) -> None:
        self.at, self.change, self.count = at, change, 0

    def step(self) -> None:
        if self.count == self.at:
            self.change()
        self.count += 1

    def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
        self.step()
        return super().open(path, size)

    def entries(self, folder: LogPath) -> list[Entry]:
        self.step()
        return super().entries(folder)

    def entry(self, path: LogPath) -> Entry | None:
        self.step()
        return super().entry(path)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two brokers with the same topics, both of them in sync."""
    home = tmp_path_factory.mktemp("brokers")
    topics = {"orders": {}, "payments": {"cleanup.policy": "compact"}}
    broker = Broker(home / "1", topics, hours=0)
    with kraftlog.LogStore(broker.path) as store:
        broker.fill(store, "payments")  # the same keys
    broker.checkpoint(HIGH_WATERMARKS, {"orders": 40, "payments": 80})
    for name in (CLEANED, RUNNING):
        shutil.copytree(broker.path, home / name)
    with kraftlog.LogStore(home / CLEANED) as store:
        assert store.clean(["payments"])
    with kraftlog.LogStore(home / RUNNING) as store:
        broker.fill(store, "orders", segments=2)
    for topic in topics:
        broker.change_partition(topic, replicas=[1, 2], isr=[1, 2], directories=[broker.directory_id, OTHER_ID])
    shutil.copytree(broker.path, home / "2")
    text = (home / "2" / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    (home / "2" / "meta.properties").write_text(text.replace(broker.directory_id, OTHER_ID))
    return home


def into(folder: Path, after: Path) -> None:
    """Give a folder the files of another one, each by a rename, as brokers do."""
    there = {path.name for path in after.iterdir() if path.is_file()}
    for path in list(folder.iterdir()):
        if path.is_file() and path.name not in there:
            path.rename(path.with_name(f"{path.name}.deleted"))
    for name in there:
        shutil.copy2(after / name, folder / "new.tmp")
        (folder / "new.tmp").rename(folder / name)


def cleaned(home: Path) -> None:
    """Let the log cleaner of both brokers remove half of a topic's records."""
    for node in "12":
        into(home / node / "payments-0", home / CLEANED / "payments-0")
        shutil.copy(home / CLEANED / CLEANER_OFFSETS, home / node / CLEANER_OFFSETS)


def retained(home: Path) -> None:
    """Let retention delete the first two segments of a topic."""
    for node in "12":
        for base_offset in (0, 10):
            for path in (home / node / "orders-0").glob(f"{base_offset:020d}.*"):
                path.rename(path.with_name(f"{path.name}.deleted"))
        (home / node / LOG_START_OFFSETS).write_text("0\n1\norders 0 20\n")


def deleted(home: Path) -> None:
    """Let both brokers delete a topic."""
    for node in "12":
        (home / node / "orders-0").rename(home / node / f"orders-0.{'0' * 32}-delete")


def started(home: Path) -> None:
    """Let both brokers start, write, and record offsets."""
    for node in "12":
        (home / node / CLEAN_SHUTDOWN).unlink()
        into(home / node / "orders-0", home / RUNNING / "orders-0")
        ends = "0\n2\norders 0 60\npayments 0 80\n"
        (home / node / HIGH_WATERMARKS).write_text(ends)
        (home / node / RECOVERY_POINTS).write_text(ends)


def rebuilt(home: Path) -> None:
    """Let both brokers write index files and snapshots again, longer, as of a log that goes on."""
    for node in "12":
        for path in (home / node / "orders-0").iterdir():
            if path.suffix in (".index", ".timeindex", ".snapshot"):
                path.write_bytes(path.read_bytes())
                path.rename(path.with_name("new.tmp"))
                (path.parent / "new.tmp").rename(path)


def audited(home: Path, log: kraftlog.Log | None = None) -> tuple[set[tuple[str, str | None]], list[kraftlog.Fault]]:
    read, files = Pass(), (log or kraftlog.open([home / "1", home / "2"])).found
    found = audit.findings(Evidence.of(files, read))
    return {(one.code.name, one.topic) for one in found if one.code.severity < Severity.NOTE}, read.faults


@pytest.mark.parametrize("change", [cleaned, retained, deleted, started, rebuilt])
def test_an_audit_while_files_are_replaced_and_deleted_is_silent(
    before: Path, tmp_path: Path, change: Change, sampled: Callable[[Iterable[int], int], list[int]]
):
    """The change happens before each access to a file or folder in turn."""
    still = LiveDisk(NEVER, lambda: None)
    with use_disk(still):
        assert audited(before) == (set(), [])
    assert still.count > 100
    for at in sampled(range(still.count), 5):
        home = Path(shutil.copytree(before, tmp_path / f"{at}"))
        with use_disk(LiveDisk(at, partial(change, home))):
            assert audited(home) == (set(), []), at
        shutil.rmtree(home)


def test_a_broker_that_starts_before_its_checkpoints_are_read(before: Path, tmp_path: Path) -> None:
    """They have offsets after the end of the log as it was listed."""
    home = Path(shutil.copytree(before, tmp_path / "home"))
    log = kraftlog.open([home / "1", home / "2"])

    class StartingDisk(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            if path.name == RECOVERY_POINTS and (home / "1" / CLEAN_SHUTDOWN).exists():
                started(home)
            return super().open(path, size)

    with use_disk(StartingDisk()):
        assert audited(home, log) == (set(), [])
    assert not (home / "1" / CLEAN_SHUTDOWN).exists()


def test_a_file_that_fails_is_a_fault_and_other_checks_go_on(before: Path, tmp_path: Path) -> None:
    """Nothing was replaced: reading again would not help."""
    home = Path(shutil.copytree(before, tmp_path / "home"))
    (home / "1" / RECOVERY_POINTS).write_text("0\n1\norders 0 99\n")

    class FailingDisk(Disk):
        def modified_ms(self, path: LogPath) -> int | None:
            raise OSError(errno.EIO, "Input/output error", str(path))

    with use_disk(FailingDisk()):
        found, faults = audited(home)
    assert found == {("recovery_point_after_end", "orders")}
    assert {one.error for one in faults} == {"unreadable_file"}
    assert "Input/output error" in faults[0].message


def test_a_partition_that_changes_each_time_is_a_fault(before: Path, tmp_path: Path) -> None:
    """An audit ends, also of a directory that never rests."""
    home = Path(shutil.copytree(before, tmp_path / "home"))
    listed = 0

    class RestlessDisk(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            nonlocal listed
            if path.name == f"{0:020d}.log" and path.parent.name == "orders-0":
                listed += 1
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            return super().open(path, size)

        def entries(self, folder: LogPath) -> list[Entry]:
            entries = super().entries(folder)
            if folder.name == "orders-0" and listed % 2:  # as if it had been deleted, now and then
                entries = [one for one in entries if not one.name.startswith(f"{0:020d}.")]
            return entries

    with use_disk(RestlessDisk()):
        _, faults = audited(home)
    assert {(one.error, one.topic) for one in faults} <= {("unreadable_file", "orders")}
    assert listed > 1


SIDES = ("1", "copy")


def compared(home: Path, sides: tuple[str, str] = SIDES) -> tuple[set[tuple[str, str | None]], list[kraftlog.Fault]]:
    read = Pass()
    own, other = (Evidence.of(kraftlog.open(home / name).found, read) for name in sides)
    found = findings_against(own, other)
    return {(one.code.name, one.topic) for one in found if one.code.severity < Severity.NOTE}, read.faults


@pytest.mark.parametrize("change", [cleaned, retained, deleted, started, rebuilt])
@pytest.mark.parametrize(("is_mirror", "sides"), [(False, SIDES), (False, SIDES[::-1]), (True, SIDES)])
def test_a_comparison_while_files_are_replaced_and_deleted_is_silent(
    before: Path,
    tmp_path: Path,
    change: Change,
    is_mirror: bool,
    sides: tuple[str, str],
    sampled: Callable[[Iterable[int], int], list[int]],
):
    """The change happens before each access to a file or folder in turn, to one of the clusters."""
    first = Path(shutil.copytree(before, tmp_path / "first"))
    shutil.copytree(before / "1", first / "copy")
    if is_mirror:
        properties = first / "copy" / "meta.properties"
        properties.write_text(properties.read_text().replace("cluster.id=", "cluster.id=x"))
        for number, path in enumerate(sorted((first / "copy").rglob("partition.metadata"))):
            path.write_text(f"version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAA{'ABCDEFGH'[number]}\n")
    still = LiveDisk(NEVER, lambda: None)
    with use_disk(still):
        assert compared(first, sides) == (set(), [])
    for at in sampled(range(still.count), 2):
        home = Path(shutil.copytree(first, tmp_path / f"{at}"))
        with use_disk(LiveDisk(at, partial(change, home))):
            assert compared(home, sides) == (set(), []), at
        shutil.rmtree(home)


def test_a_difference_is_found_also_if_other_partitions_change(before: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(before, tmp_path / "home"))
    shutil.copytree(home / "1", home / "copy")
    path = home / "copy" / "payments-0" / f"{0:020d}.log"
    path.write_bytes(bytes(kraftlog.encode(pa.table({"key": ["other"] * 10, "value": ["other"] * 10}))))
    changed = 0

    class RetainingDisk(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            nonlocal changed
            if path.name == f"{0:020d}.log" and path.parent == home / "1" / "orders-0" and not changed:
                changed += 1
                retained(home)
            return super().open(path, size)

    with use_disk(RetainingDisk()):
        assert compared(home) == ({("record_differs", "payments")}, [])
    assert changed


def test_a_ledger_while_the_log_is_truncated(
    tmp_path: Path, sampled: Callable[[Iterable[int], int], list[int]]
) -> None:
    """What the other replica has is in the ledger, or gone; it is no fault."""

    def written(home: Path, at: int) -> tuple[LiveDisk, list[bytes]]:
        one = replica(home / "1", (0, [batch(0, 4, "a"), batch(1, 6, "b")]), node=1)
        two = replica(home / "2", (0, [batch(0, 4, "a")]), (1, [batch(1, 5, "x")]), node=2)
        log = kraftlog.open([one, two])
        live = LiveDisk(at, (two / "orders-0" / f"{1:020d}.log").unlink)
        with use_disk(live):
            done = write_loss_ledger(log, home / "ledger")
        assert done.faults == []
        there = {path.name for path in (home / "ledger").iterdir()}
        assert there == {LEDGER_FILE, *(folder.name for folder in done.folders)}
        values: list[bytes] = pq.read_table(home / "ledger" / LEDGER_FILE)["value"].to_pylist()
        copies = [kraftlog.open(folder).records(["value"]).to_table()["value"].to_pylist() for folder in done.folders]
        assert [value for some in copies for value in some] == values
        return live, values

    still, values = written(tmp_path / "still", NEVER)
    assert values == [b"x"]
    each = [written(tmp_path / str(at), at)[1] for at in sampled(range(still.count), 12)]
    assert all(values in ([], [b"x"]) for values in each)
    assert [] in each
