"""Answers of object stores that are shorter than requested: found, and never taken for bytes of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.disk import remote_files
from kraftlog.disk.remote_files import RemoteFile
from kraftlog.disk.remote_path import RemotePath


class Stored:
    """A file as pyarrow opens it: of an answer that is too short, it says that all of it came."""

    def __init__(self, data: bytes, cut: Callable[[int], int]) -> None:
        self.data = data
        self.cut = cut

    def size(self) -> int:
        return len(self.data)

    def get_stream(self, start: int, size: int) -> Any:
        found = self.data[start : start + size]

        class Stream:
            @staticmethod
            def readinto(target: memoryview) -> int:
                came = found[: self.cut(len(found))]
                target[: len(came)] = came
                return len(found)

        return Stream


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_files, "FIRST_PAUSE", 0)
        yield


def opened(data: bytes, cut: Callable[[int], int]) -> RemoteFile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_files, "locate", lambda path: (None, path.key))
        patch.setattr(remote_files, "open_file", lambda *_: Stored(data, cut))
        return RemoteFile(RemotePath.parse("s3://bucket/one.log"))


BYTES = st.one_of(st.binary(min_size=1, max_size=40), st.lists(st.sampled_from(b"\xf5\x0a\x00"), min_size=1).map(bytes))


@given(BYTES, st.data())
def test_short_answers(data: bytes, draws: st.DataObject):
    """Whatever comes at each request, what is returned are the bytes of the file."""

    def cut(size: int) -> int:
        return size if draws.draw(st.booleans()) else draws.draw(st.integers(0, size))

    start = draws.draw(st.integers(0, len(data) - 1))
    end = draws.draw(st.integers(start + 1, len(data)))
    try:
        found = opened(data, cut).read(start, end)
    except OSError as error:
        assert "s3://bucket/one.log: bytes" in str(error)  # noqa: PT017
        assert "the answer is shorter than requested" in str(error)  # noqa: PT017
    else:
        assert found == data[start:end]


@given(BYTES)
def test_whole_answers(data: bytes):
    assert opened(data, lambda size: size).read(0, len(data)) == data


@given(st.binary(min_size=1, max_size=40), st.integers(1, 40))
def test_answers_that_stay_short(data: bytes, missing: int):
    with pytest.raises(OSError, match="shorter than requested"):
        opened(data, lambda size: max(size - missing, 0)).read(0, len(data))


def test_long_parts_are_asked_for_in_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_files, "READ_BYTES", 160)
    data = bytes(range(256)) * 5
    asked: list[int] = []
    file = opened(data, lambda size: asked.append(size) or size)  # type: ignore[func-returns-value]
    assert file.read(3, 1203) == data[3:1203]
    assert sorted(asked) == [80, *[160] * 7]
    asked.clear()
    assert file.read(3, 173) == data[3:173]  # a little more than a piece is one
    assert asked == [170]
    assert file.read(5, 5) == b""
