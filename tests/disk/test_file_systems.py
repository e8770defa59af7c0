"""File systems of URIs: what their options may be, and what is said when a client fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow.fs
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk import remote_files
from kraftlog.disk.file_systems import locate
from kraftlog.disk.remote_files import RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.disk.shown_uri import shown_uri

FOLDER = GOLDEN / "codecs" / "log" / "codec-lz4-0"


@pytest.fixture
def memory() -> Iterator[Any]:
    """Return a file system of fsspec with a partition, at ``memory://backup/codec-lz4-0``."""
    found = fsspec.filesystem("memory")
    found.put(str(FOLDER), "/backup/codec-lz4-0", recursive=True)
    yield found
    found.rm("/backup", recursive=True)


def test_texts_of_a_uri_are_what_s3_takes():
    texts = "anonymous=false&force_virtual_addressing=True&request_timeout=1.5&connect_timeout=2&load_frequency=60"
    named = {"access_key": "key", "secret_key": "secret"}
    values = {"force_virtual_addressing": True, "request_timeout": 1.5, "connect_timeout": 2, "load_frequency": 60}
    found, where = locate(RemotePath.parse(f"s3://bucket/logs?region=r&{texts}", named))
    assert where == "bucket/logs"
    assert found == pyarrow.fs.S3FileSystem(region="r", anonymous=False, **values, **named)
    assert found == locate(RemotePath.parse("s3://bucket", {"region": "r", "anonymous": False, **values, **named}))[0]
    assert locate(RemotePath.parse("s3://bucket?region=r&anonymous=true"))[0] == pyarrow.fs.S3FileSystem(
        region="r", anonymous=True
    )


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("anonymous=yes", "s3://bucket: storage option anonymous is 'yes', not true or false"),
        ("request_timeout=10s", "s3://bucket: storage option request_timeout is '10s', not a number of seconds"),
        ("load_frequency=1.5", "s3://bucket: storage option load_frequency is '1.5', not a number of seconds"),
    ],
)
def test_other_texts_are_refused(option: str, text: str):
    with pytest.raises(ValueError, match=text):
        locate(RemotePath.parse(f"s3://bucket/logs?region=r&{option}"))


def test_values_that_are_not_plain_are_refused():
    with pytest.raises(
        ValueError, match="storage option client_kwargs: expected a text, a number or a boolean, found a dict"
    ):
        kraftlog.open("memory://backup/logs", storage_options={"client_kwargs": {"endpoint_url": "http://host"}})


def test_options_are_not_in_messages():
    with pytest.raises(ValueError, match="cannot be opened with storage_options access_token") as caught:
        locate(RemotePath.parse("gs://bucket^/logs", {"access_token": "secret"}))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__  # pyarrow's own error quotes the options


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/backup/a@b/x?y=z", "/backup/a@b/x?y=z"),
        ("s3://key:secret@bucket/logs", "s3://bucket/logs"),
        ("s3://key:sec?ret@bucket/logs", "s3://bucket/logs"),
        ("abfss://logs@account.dfs.core.windows.net/a@b", "abfss://logs@account.dfs.core.windows.net/a@b"),
        ("abfss://logs:secret@account.dfs.core.windows.net", "abfss://logs@account.dfs.core.windows.net"),
        ("abfs://:secret@account.blob.core.windows.net/logs", "abfs://account.blob.core.windows.net/logs"),
        ("s3://bucket/orders-?/*.log", "s3://bucket/orders-?/*.log"),
        ("gs://bucket/logs?access_token=secret&x-y=z", "gs://bucket/logs"),
        ("https://host/logs?X-Amz-Signature=secret", "https://host/logs"),
    ],
)
def test_shown_uri(given: str, shown: str):
    assert shown_uri(given) == shown


def test_what_a_client_raises_is_a_fault_of_the_file(memory: Any, monkeypatch: pytest.MonkeyPatch):
    log = kraftlog.open("memory://backup/codec-lz4-0")
    name, cat_file = log.found.segments[0].path.name, type(memory).cat_file

    def fails(self: Any, path: str, **bounds: Any) -> bytes:
        if path.endswith(name):
            raise ValueError("unexpected answer of the server")
        return bytes(cat_file(self, path, **bounds))

    monkeypatch.setattr(type(memory), "cat_file", fails)
    stream = log.records(["offset"])
    assert stream.to_table()["offset"].to_pylist()[0] == 341
    (fault,) = stream.faults
    assert fault.error == "unreadable_file"
    assert f"{name}: bytes 0 to " in fault.message


@pytest.mark.parametrize("is_asynchronous", [False, True])
def test_pieces_are_asked_for_together_where_fsspec_can(
    memory: Any, monkeypatch: pytest.MonkeyPatch, is_asynchronous: bool
):
    path = next(FOLDER.glob("*.log"))
    data = path.read_bytes()
    monkeypatch.setattr(remote_files, "READ_BYTES", len(data) // 2 + 1)
    monkeypatch.setattr(type(memory), "async_impl", is_asynchronous)
    together, alone, cat_file = threading.Barrier(2), threading.Lock(), type(memory).cat_file

    def meets_the_other(self: Any, path: str, **bounds: Any) -> bytes:
        if is_asynchronous:
            together.wait(timeout=30)
            return bytes(cat_file(self, path, **bounds))
        assert alone.acquire(blocking=False), "the other one is under way"
        try:
            return bytes(cat_file(self, path, **bounds))
        finally:
            alone.release()

    monkeypatch.setattr(type(memory), "cat_file", meets_the_other)
    options = {"skip_instance_cache": is_asynchronous}  # another file system than that of the other tests
    file = RemoteFile(RemotePath.parse(f"memory://backup/codec-lz4-0/{path.name}", options))
    assert file.read(0, file.size) == data
