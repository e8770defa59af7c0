"""Bytes of a file that are sent: all of them, in order, whatever the socket takes and whatever becomes of the file."""

from __future__ import annotations

import errno
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from kraftlog.disk.file_bytes import FileBytes
from kraftlog.disk.local_file import LocalFile, ShortReadError

DATA = random.Random(7).randbytes(1 << 20)
START, END = 1000, len(DATA) - 500


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def some(path: Path) -> FileBytes:
    file = LocalFile(path)
    some = FileBytes(file, START, END)
    file.close()
    return some


def received(reader: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += reader.recv(size - len(data))
    return data


def test_what_the_socket_does_not_take_is_read(some: FileBytes):
    writer, reader = socket.socketpair()
    with writer, reader:
        writer.setblocking(False)
        sent = some.send(writer.fileno())
        assert 0 < sent < len(some) == END - START
        assert received(reader, sent) + some[sent:] == DATA[START:END]
        with pytest.raises(BlockingIOError):
            reader.recv(1, socket.MSG_DONTWAIT)


def test_all_is_sent_in_several_calls(path: Path, monkeypatch: pytest.MonkeyPatch):
    send, sizes = os.sendfile, list[int]()

    def little(target: int, source: int, start: int, size: int) -> int:
        sizes.append(size)
        return send(target, source, start, min(size, 4000))

    monkeypatch.setattr(os, "sendfile", little)
    some = FileBytes(LocalFile(path), START, START + 10_000)
    writer, reader = socket.socketpair()
    with writer, reader:
        assert some.send(writer.fileno()) == 10_000
        assert received(reader, 10_000) == DATA[START : START + 10_000]
    assert sizes == [10_000, 6000, 2000]


def test_a_file_that_was_truncated(some: FileBytes, path: Path):
    os.truncate(path, START + 10)
    writer, reader = socket.socketpair()
    with writer, reader:
        assert some.send(writer.fileno()) == 10
        with pytest.raises(ShortReadError):
            some[10:]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EIO])
def test_a_file_system_that_cannot_send(some: FileBytes, monkeypatch: pytest.MonkeyPatch, code: int):
    def refused(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "sendfile", refused)
    assert some.send(0) == 0
    assert some[:] == DATA[START:END]


def test_a_connection_that_is_lost(some: FileBytes):
    writer, reader = socket.socketpair()
    reader.close()
    with writer, pytest.raises(ConnectionError):
        some.send(writer.fileno())


def test_the_file_is_closed_at_the_end(path: Path):
    dropped, left = (FileBytes(LocalFile(path), START, END) for _ in range(2))
    descriptors = [one._file.fileno() for one in (dropped, left)]
    with left:
        del dropped
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptors[0])
        os.fstat(descriptors[1])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[1])
