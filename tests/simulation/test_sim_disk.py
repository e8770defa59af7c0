"""SimDisk against the real file system, and what its crashes leave."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from faults import INTERRUPTS, Fault, InterruptError
from hypothesis import given, settings
from hypothesis import strategies as st
from losses import loss_of, random_loss
from nodes import SECTOR, ZEROS, File
from process import Process
from sim_disk import Loss, SimDisk
from sim_executor import SimExecutor

from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.durable import write_file
from kraftlog.disk.local_file import ShortReadError
from kraftlog.disk.lock import LogDirectoryLockedError, lock_log_directories
from kraftlog.log_store.owner import Owner

A, B, F, G = Path("/a"), Path("/b"), Path("/f"), Path("/f/g")


def contents(disk: Disk, folder: Path) -> dict[str, bytes | None]:
    """Return what a folder shows through the interface."""
    found: dict[str, bytes | None] = {}
    for entry in disk.entries(folder):
        path = folder / entry.name
        found[str(path)] = disk.read_bytes(path) if entry.is_file else None
        if entry.is_file:
            assert entry.size == len(disk.read_bytes(path))
        else:
            found |= contents(disk, path)
    return found


# the same as a real file system

NAMES = st.sampled_from(["a", "b", "f", "f/a", "f/b", "f/g", "f/g/a", "missing/a"])
DATA = st.binary(max_size=40) | st.integers(0, 1500).map(lambda size: b"x" * size)
POSITION = st.integers(0, 1200)


def append(disk: Disk, path: Path, data: bytes) -> None:
    with disk.open_append(path) as file:
        file.append(data[:7])
        file.append(data[7:])


def create(disk: Disk, path: Path, data: bytes) -> None:
    with disk.create(path) as file:
        file.append(data)
        file.append(data[:3])


def update(disk: Disk, path: Path, data: bytes, position: int) -> None:
    with disk.open_update(path) as file:
        file.append(data[:5])
        file.pwrite(data, position)
        file.sync()


def truncate(disk: Disk, path: Path, size: int) -> None:
    with disk.open_update(path) as file:
        file.truncate(size)


OPERATIONS = st.one_of(
    st.tuples(st.just(append), NAMES, DATA),
    st.tuples(st.just(create), NAMES, DATA),
    st.tuples(st.just(update), NAMES, DATA, POSITION),
    st.tuples(st.just(truncate), NAMES, POSITION),
    st.tuples(st.just(Disk.make_new_folder), NAMES),
    st.tuples(st.just(Disk.make_folder), NAMES),
    st.tuples(st.just(Disk.unlink), NAMES),
    st.tuples(st.just(Disk.remove_folder), NAMES),
    st.tuples(st.just(Disk.remove_tree), NAMES),
    st.tuples(st.just(Disk.sync_folder), st.sampled_from(["", "f", "f/g"])),
    st.tuples(st.just(Disk.sync_file), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("open"), NAMES, POSITION),
)


def outcome(disk: Disk, root: Path, operation: tuple[object, ...]) -> object:
    what, name, *rest = operation
    path = root / str(name)
    try:
        if what == "rename":
            disk.rename(path, root / str(rest[0]))
        elif what == "open":
            if disk.is_folder(path):
                return "folder"  # which Linux opens, and then reads nothing of
            file = disk.open(path)
            return file.size, file.read(0, rest[0])  # type: ignore[arg-type]
        else:
            name_of = what.__name__  # type: ignore[attr-defined]
            is_method = getattr(Disk, name_of, None) is what
            getattr(disk, name_of)(path, *rest) if is_method else what(disk, path, *rest)  # type: ignore[operator]
    except ShortReadError as error:
        return "short", error.expected, error.found
    except OSError as error:
        # which of two reasons a rename is refused for is left to the file system
        return "refused" if what == "rename" else (type(error).__name__, error.errno)
    return None


@settings(max_examples=300)
@given(st.lists(OPERATIONS, max_size=25))
def test_a_process_sees_what_a_real_file_system_shows(operations: list[tuple[object, ...]]):
    simulated, root = SimDisk(), Path("/sim/root")
    simulated.make_folder(root)
    with tempfile.TemporaryDirectory() as name:
        real, real_root = Disk(), Path(name)
        for operation in operations:
            assert outcome(simulated, root, operation) == outcome(real, real_root, operation), operation
            expected = {str(root) + path.removeprefix(name): data for path, data in contents(real, real_root).items()}
            assert contents(simulated, root) == expected, operation


# crashes


def test_nothing_is_durable_by_itself():
    disk = SimDisk()
    append(disk, A, b"some")
    assert disk.files() == {"/a": b"some"}
    assert disk.crash(loss_of("none", disk)).files() == {}
    assert disk.crash(loss_of("all", disk)).files() == {"/a": b"some"}
    assert disk.crash(loss_of("names", disk)).files() == {"/a": b""}
    assert disk.crash(loss_of("data", disk)).files() == {}


def test_the_sync_of_a_file_is_not_one_of_its_name():
    disk = SimDisk()
    with disk.open_append(A) as file:
        file.append(b"some")
        file.sync()
        assert disk.crash(loss_of("none", disk)).files() == {}
        assert disk.crash(loss_of("names", disk)).files() == {"/a": b"some"}
        disk.sync_folder(Path("/"))
        file.append(b" more")
    assert disk.crash(loss_of("none", disk)).files() == {"/a": b"some"}


def test_a_folder_needs_its_own_name():
    disk = SimDisk()
    disk.make_new_folder(F)
    create(disk, G, b"")
    disk.sync_folder(F)
    assert disk.crash(loss_of("none", disk)).files() == {}
    disk.sync_folder(Path("/"))
    assert disk.crash(loss_of("none", disk)).files() == {"/f": None, "/f/g": b""}


def write_file_on(disk: SimDisk, path: Path, data: bytes) -> None:
    with use_disk(disk):
        write_file(path, data)


def test_a_rename_may_reach_the_disk_before_the_data():
    disk = SimDisk()
    write_file_on(disk, A, b"old")
    with disk.create(B) as file:
        file.append(b"new")
    disk.rename(B, A)
    left = {kind: disk.crash(loss_of(kind, disk)).files() for kind in ("all", "none", "names", "data")}
    assert left == {"all": {"/a": b"new"}, "none": {"/a": b"old"}, "names": {"/a": b""}, "data": {"/a": b"old"}}


def test_write_file_leaves_the_old_or_the_new_file():
    disk = SimDisk()
    write_file_on(disk, A, b"old")
    first = len(disk.moments)
    write_file_on(disk, A, b"new" * 600)
    dice = Random(1)
    seen = set()
    for moment in disk.moments[first:]:
        at = SimDisk(moment.nodes)
        for _ in range(200):
            seen.add(at.crash(random_loss(at, dice)).files()["/a"])
    assert seen == {b"old", b"new" * 600}
    assert disk.crash(loss_of("none", disk)).files() == {"/a": b"new" * 600}


def test_changes_of_one_name_stay_in_order_and_others_do_not():
    disk = SimDisk()
    create(disk, A, b"")
    create(disk, B, b"")
    disk.unlink(A)
    create(disk, A, b"")
    dice = Random(2)
    left = {tuple(disk.crash(random_loss(disk, dice)).files()) for _ in range(300)}
    assert left == {(), ("/a",), ("/b",), ("/a", "/b")}
    disk = SimDisk()
    create(disk, A, b"")
    disk.rename(A, B)
    left = {tuple(disk.crash(random_loss(disk, dice)).files()) for _ in range(300)}
    assert left == {(), ("/a",), ("/b",)}


def test_a_rename_between_folders_is_whole():
    disk = SimDisk()
    disk.make_folder(F)
    write_file_on(disk, A, b"some")
    disk.rename(A, G)
    dice = Random(3)
    left = {tuple(disk.crash(random_loss(disk, dice)).files()) for _ in range(300)}
    assert left == {("/a", "/f"), ("/f", "/f/g")}
    disk.sync_folder(F)
    assert tuple(disk.crash(loss_of("none", disk)).files()) == ("/f", "/f/g")


def test_torn_sectors():
    disk = SimDisk()
    write_file_on(disk, A, b"a" * 3 * SECTOR)
    with disk.open_update(A) as file:
        file.pwrite(b"b" * 3 * SECTOR, 0)
        file.pwrite(b"c" * SECTOR, 3 * SECTOR)
    number = disk._at(A)
    left = disk.crash(Loss(sectors={(number, 1): 0, (number, 3): ZEROS})).files()["/a"]
    assert left == b"b" * SECTOR + b"a" * SECTOR + b"b" * SECTOR + bytes(SECTOR)
    assert disk.crash(Loss(sizes={number: 0})).files()["/a"] == b"b" * 3 * SECTOR
    dice = Random(4)
    some = {disk.crash(random_loss(disk, dice)).files()["/a"] for _ in range(2000)}
    sectors = {tuple(data[at : at + 1] for at in range(0, len(data), SECTOR)) for data in some}
    assert {len(data) for data in some} == {3 * SECTOR, 4 * SECTOR}
    assert len(sectors) == 2**3 + 2**4


def test_a_file_that_was_cut_may_have_its_old_size():
    disk = SimDisk()
    write_file_on(disk, A, b"a" * 1000)
    truncate(disk, A, 10)
    append(disk, A, b"b" * 10)
    dice = Random(5)
    left = {disk.crash(random_loss(disk, dice)).files()["/a"] for _ in range(1000)}
    assert left >= {b"a" * 1000, b"a" * 10, b"a" * 10 + b"b" * 10}


def test_the_order_of_a_prefix():
    disk = SimDisk()
    append(disk, A, b"1")
    append(disk, B, b"2")
    left = [SimDisk(moment.nodes).crash(loss_of("all", SimDisk(moment.nodes))).files() for moment in disk.moments]
    assert left == [{"/a": b""}, {"/a": b"1"}, {"/a": b"1", "/b": b""}, {"/a": b"1", "/b": b"2"}]


def test_a_sync_that_fails_marks_the_pages_clean():
    disk = SimDisk(fault=Fault("EIO at a sync", 4))
    create(disk, A, b"")
    disk.sync_folder(Path("/"))
    with disk.open_append(A) as file:
        file.append(b"lost")
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        file.append(b"x" * SECTOR)
        file.sync()
    assert disk.files()["/a"] == b"lost" + b"x" * SECTOR
    left = disk.crash(loss_of("all", disk)).files()["/a"]
    assert left == b"lost" + b"x" * SECTOR  # the sector was written again, with all of it

    disk = SimDisk(fault=Fault("EIO at a sync", 4))
    create(disk, A, b"")
    disk.sync_folder(Path("/"))
    with disk.open_append(A) as file:
        file.append(b"l" * SECTOR)
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        file.append(b"x" * SECTOR)
        file.sync()
    assert disk.crash(loss_of("all", disk)).files()["/a"] == bytes(SECTOR) + b"x" * SECTOR


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        ("ENOSPC", lambda disk: append(disk, A, b"12345678")),
        ("EMFILE", lambda disk: disk.open(A)),
        ("EIO at a write", lambda disk: disk.unlink(A)),
    ],
)
@pytest.mark.parametrize("lasts", [False, True])
def test_faults(kind: str, act: Callable[[SimDisk], object], lasts: bool):
    disk = SimDisk()
    create(disk, A, b"old")
    disk = SimDisk(disk.nodes, Fault(kind, 0 if lasts or kind != "ENOSPC" else 1, lasts))
    with pytest.raises(OSError, match=r"No space|Too many|Input/output"):
        act(disk)
    if kind == "ENOSPC":
        assert disk.files()["/a"] == b"oldold123"
    if not lasts:
        act(disk)


@pytest.mark.parametrize(("kind", "left"), [(INTERRUPTS[0], b""), (INTERRUPTS[1], b"new")])
def test_an_interrupt_comes_once(kind: str, left: bytes):
    disk = SimDisk()
    create(disk, A, b"")
    disk = SimDisk(disk.nodes, Fault(kind, 1, lasts=True))
    with pytest.raises(InterruptError):
        append(disk, A, b"new")
    assert disk.files()["/a"] == left
    append(disk, A, b"more")
    assert disk.files()["/a"] == left + b"more"


def test_an_interrupt_is_of_the_main_thread():
    disk = SimDisk(fault=Fault(INTERRUPTS[0], 0))
    done = SimExecutor(disk, Random(1)).submit(append, disk, A, b"some")
    assert not disk.files()
    done.result()
    assert disk.files() == {"/a": b"some"}
    assert not disk.has_failed


def test_threads_do_what_they_are_given_later():
    done: list[int] = []
    executor = SimExecutor(SimDisk(), Random(1))
    tasks = [executor.submit(done.append, number) for number in range(5)]
    assert done == []
    tasks[2].result()
    assert 2 in done
    executor.shutdown()
    assert sorted(done) == list(range(5))
    with pytest.raises(RuntimeError):
        executor.submit(done.append, 5)
    dropped = SimExecutor(SimDisk(), Random(1))
    dropped.submit(done.append, 6)
    dropped.shutdown(drops_waiting=True)
    assert 6 not in done
    failing = SimExecutor(SimDisk(), Random(1)).submit(disk_is_full)
    with pytest.raises(OSError, match="full"):
        failing.result()


def disk_is_full() -> None:
    raise OSError("full")


def test_a_child_changes_nothing():
    disk = SimDisk()
    process = Process(disk)
    owner = Owner(Path("/"))
    with process.running(), process.child():
        assert not owner.is_here
    assert owner.is_here
    with pytest.raises(AssertionError, match="a child process"), process.running(), process.child():
        create(disk, A, b"of a child")


def test_a_file_that_vanishes():
    disk = SimDisk()
    write_file_on(disk, A, b"some")
    file = disk.open(A)
    disk.vanish(A)
    assert file.read(0, 4) == b"some"
    with pytest.raises(FileNotFoundError):
        disk.open(A)
    assert disk.crash(loss_of("all", disk)).files() == {}


def test_equal_disks_have_equal_keys():
    def made(*names: str) -> SimDisk:
        disk = SimDisk()
        for name in names:
            create(disk, Path("/", name), name.encode())
        return disk.crash(Loss())

    assert made("a", "b").state_key() == made("b", "a").state_key()
    assert made("a", "b").state_key() != made("a").state_key()
    disk = SimDisk()
    create(disk, A, b"a")
    assert disk.kill().state_key() != disk.crash(Loss()).state_key()
    assert disk.kill().crash(loss_of("none", disk)).files() == {}


def test_locks_belong_to_the_process_that_is_simulated():
    disk = SimDisk()
    disk.make_folder(Path("/logs/t-0"))
    process = Process(disk)
    with process.running():
        lock_log_directories([Path("/logs/t-0")])
        with pytest.raises(LogDirectoryLockedError):
            lock_log_directories([Path("/logs/t-0")])
    with Process(disk.kill()).running(), lock_log_directories([Path("/logs/t-0")]):
        pass
    assert isinstance(disk.nodes[disk._at(Path("/logs/.lock"))], File)
