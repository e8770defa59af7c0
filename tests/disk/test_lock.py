"""The lock of a log directory is the one that Kafka takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_this_process_holds_it(tmp_path: Path):
    """Also under another name of the folder, and not longer than until it is closed."""
    (tmp_path / "t-0").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    lock = lock_log_directories([tmp_path / "t-0"])
    for same in (tmp_path / "t-1", link / "t-0", tmp_path / "t-0" / ".." / "anything"):
        with pytest.raises(LogDirectoryLockedError):
            lock_log_directories([same])
    lock.close()
    lock.close()
    with lock_log_directories([tmp_path / "t-1"]):
        pass
    assert (tmp_path / ".lock").exists()


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        lock_log_directories([tmp_path / "no" / "t-0"])
    (tmp_path / "no").mkdir()
    lock_log_directories([tmp_path / "no" / "t-0"]).close()
