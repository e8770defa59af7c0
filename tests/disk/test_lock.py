"""The lock of a log directory is the one that Kafka takes."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlog.disk import writing
from kraftlog.disk.lock import LogDirectoryLockedError, lock_log_directories

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_holds_it(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LogDirectoryLockedError, match="held by a broker or another writer") as raised:
            lock_log_directories([tmp_path / "t-0"])
        assert str(tmp_path) in str(raised.value)
        holder.communicate(b"")
    lock_log_directories([tmp_path / "t-0"]).close()


def test_another_process_finds_it_held(tmp_path: Path):
    try_it = HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    with lock_log_directories([tmp_path / "t-0"]):
        done = subprocess.run([sys.executable, "-c", try_it, tmp_path / ".lock"], input=b"", capture_output=True)
        assert b"BlockingIOError" in done.stderr
    done = subprocess.run([sys.executable, "-c", try_it, tmp_path / ".lock"], input=b"", capture_output=True)
    assert done.stdout == b"held\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    return tmp_path / "logs"


def other_process_gets(directory: Path) -> bool:
    try_it = HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    done = subprocess.run([sys.executable, "-c", try_it, directory / ".lock"], input=b"", capture_output=True)
    assert done.stdout == b"held\n" or b"BlockingIOError" in done.stderr
    return done.stdout == b"held\n"


def assert_refused(folder: Path, directory: Path) -> None:
    """Check that a folder is refused while ``directory`` is locked, and that the refusal does not end the lock."""
    with pytest.raises(LogDirectoryLockedError):
        lock_log_directories([folder])
    assert not other_process_gets(directory)


def test_this_process_holds_it(directory: Path):
    """Also under another name of the folder, and not longer than until it is closed."""
    link = directory.parent / "link"
    link.symlink_to(directory)
    lock = lock_log_directories([directory / "t-0"])
    for same in (directory / "t-1", link / "t-0", directory / "t-0" / ".." / "anything"):
        assert_refused(same, directory)
    lock.close()
    lock.close()
    with lock_log_directories([directory / "t-1"]):
        pass
    assert (directory / ".lock").exists()


@contextmanager
def bound(directory: Path, other: Path) -> Iterator[None]:
    """Show a folder under a second name without a link; where that is not permitted, at least its lock file."""
    other.mkdir()
    mounted = subprocess.run(["mount", "--bind", directory, other], capture_output=True).returncode == 0
    if not mounted:
        (other / ".lock").hardlink_to(directory / ".lock")
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", other], check=True)


def test_a_bind_mount_of_a_locked_directory(directory: Path):
    other = directory.parent / "bound"
    with lock_log_directories([directory / "t-0"]) as lock, bound(directory, other):
        assert_refused(other / "t-0", directory)
        lock.close()
        with lock_log_directories([other / "t-0"]):
            assert_refused(directory / "t-0", directory)


def test_one_file_under_two_names(directory: Path):
    other = directory.parent / "other"
    other.mkdir()
    with lock_log_directories([directory / "t-0"]):
        (other / ".lock").hardlink_to(directory / ".lock")
        assert_refused(other / "t-0", directory)


def test_a_folder_that_is_a_link(directory: Path):
    """A broker of either log directory would write to the partition: that of the link, and that of its target."""
    elsewhere = directory.parent / "elsewhere"
    (elsewhere / "u-0").mkdir(parents=True)
    (directory / "u-0").symlink_to(Path("..") / "elsewhere" / "u-0")
    with lock_log_directories([directory / "u-0"]):
        assert not other_process_gets(elsewhere)
        assert_refused(elsewhere / "u-0", directory)
        assert_refused(directory / "t-0", directory)
    with lock_log_directories([elsewhere / "u-0"]):
        with pytest.raises(LogDirectoryLockedError) as raised:
            lock_log_directories([directory / "u-0"])
        assert raised.value.directory == directory / ".." / "elsewhere"
        assert other_process_gets(directory)  # nothing is kept of a lock that failed halfway


def test_several_names_are_locked_once(directory: Path):
    with lock_log_directories([directory / "t-0", directory / "t-1", directory / "." / "t-2"]):
        assert not other_process_gets(directory)
    assert other_process_gets(directory)


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOLCK, errno.EIO])
def test_another_error_is_not_a_held_lock(directory: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    for owner, name in ((fcntl, "lockf"), (writing, "_give")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fails)
            (directory / ".lock").unlink(missing_ok=True)
            with pytest.raises(OSError, match=os.strerror(code)) as raised:
                lock_log_directories([directory / "t-0"])
            assert not isinstance(raised.value, LogDirectoryLockedError)
    lock_log_directories([directory / "t-0"]).close()


FORK = """
import os, sys
from pathlib import Path
from kraftlog.disk.lock import LogDirectoryLockedError, lock_log_directories
with lock_log_directories([Path(sys.argv[1])]):
    there, gone = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            lock_log_directories([Path(sys.argv[1])])
        except LogDirectoryLockedError:
            os.write(there[1], b"held")
        os.read(gone[0], 1)
        lock_log_directories([Path(sys.argv[1])]).close()
        os._exit(7)
    print(os.read(there[0], 4))
os.write(gone[1], b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_process_inherits_nothing(directory: Path):
    """It is kept out as long as the process holds the lock that it was forked from, and no longer."""
    done = subprocess.run([sys.executable, "-c", FORK, directory / "t-0"], capture_output=True, text=True)
    assert done.stdout == "b'held'\n7\n", done.stderr


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        lock_log_directories([tmp_path / "no" / "t-0"])
    (tmp_path / "no").mkdir()
    lock_log_directories([tmp_path / "no" / "t-0"]).close()
