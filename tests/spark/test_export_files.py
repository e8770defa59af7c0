"""What ``to_parquet`` does around the tasks, with these run one after the other, without Spark."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import export, export_publish, to_parquet
from kraftlog.spark.export_plan import COMPRESSIONS
from kraftlog.spark.export_publish import only_writer
from kraftlog.spark.parts import Part
from segment_files import flip, write_partition
from spark_rows import NoJob

Work = Callable[[Part], Iterator[pa.RecordBatch]]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Run tasks here; those of the parts that a test puts into the set fail."""
    numbers: set[int] = set()

    def over_parts(_spark: None, parts: list[Part], work: Work, _schema: pa.Schema, _title: str) -> SimpleNamespace:
        rows: list[SimpleNamespace] = []
        for part in parts:
            if part.number in numbers:
                raise RuntimeError(f"part {part.number} fails")
            rows += [SimpleNamespace(**row) for batch in work(part) for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: rows)

    monkeypatch.setattr(export, "over_parts", over_parts)
    return numbers


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Write three segments; the first is damaged."""
    write_partition(tmp_path / "log" / "orders-0", segments=3)
    flip(tmp_path / "log" / "orders-0" / f"{0:020d}.log")
    return tmp_path / "log"


def expected_errors(log: Path) -> pa.Table:
    stream = kraftlog.open(log).records()
    stream.to_table()
    assert stream.errors.num_rows == 1
    return stream.errors


def test_a_quarantine_of_an_export_that_goes_on(failing: set[int], damaged: Path, tmp_path: Path):
    options = {"onError": "quarantine", "quarantinePath": str(tmp_path / "quarantine")}
    failing.add(2)
    with pytest.raises(RuntimeError, match="part 2 fails"):
        to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), **options)
    failing.clear()
    found = to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), **options)
    assert found.errors.equals(expected_errors(damaged))
    assert pq.read_table(tmp_path / "quarantine").equals(expected_errors(damaged))


def test_a_quarantine_of_an_export_that_is_refused(failing: set[int], damaged: Path, tmp_path: Path):
    options = {"onError": "quarantine", "quarantinePath": str(tmp_path / "quarantine")}
    to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), **options)
    with pytest.raises(FileExistsError, match="holds a finished export"):
        to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), **options)
    assert pq.read_table(tmp_path / "quarantine").equals(expected_errors(damaged))
    flip(damaged / "orders-0" / f"{0:020d}.log")
    to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), overwrite=True, **options)
    assert pq.read_table(tmp_path / "quarantine").num_rows == 0


def test_a_quarantine_that_cannot_be(damaged: Path, tmp_path: Path):
    with pytest.raises(ValueError, match="quarantinePath is s3://bucket/errors, not a folder"):
        to_parquet(
            NoJob(), str(damaged), str(tmp_path / "output"), onError="quarantine", quarantinePath="s3://bucket/errors"
        )
    assert not (tmp_path / "output").exists()


def test_no_secret_is_in_the_manifest(failing: set[int], tmp_path: Path):
    memory: Any = fsspec.filesystem("memory")
    memory.put(str(GOLDEN / "codecs" / "log" / "codec-lz4-0"), "/export/codec-lz4-0", recursive=True)
    secrets = {"kafka.sasl.jaas.config": "secret", "storageOptions": {"key": "secret"}}
    known = {"kafka.isolation.level": "read_committed", "rangeBytes": "16k"}
    try:
        found = to_parquet(NoJob(), "memory://export/codec-lz4-0?token=secret", str(tmp_path), **secrets, **known)
    finally:
        memory.rm("/export", recursive=True)
    assert "secret" not in found.manifest.read_text()
    paths = json.dumps(["memory://export/codec-lz4-0"])
    assert json.loads(found.manifest.read_text())["options"] == {"paths": paths, **known}


@pytest.mark.parametrize(
    ("compression", "level", "text"),
    [
        ("bz2", None, "compression is 'bz2', not one of zstd, lz4, snappy, gzip, brotli, none"),
        ("none", 5, "compression_level is 5, but compression is none"),
        ("snappy", 5, "compression_level is 5: .*snappy"),
        ("gzip", 99, "compression_level is 99: "),
    ],
)
def test_compressions_that_are_refused(damaged: Path, tmp_path: Path, compression: str, level: int | None, text: str):
    with pytest.raises(ValueError, match=text):
        to_parquet(NoJob(), str(damaged), str(tmp_path / "output"), compression=compression, compression_level=level)
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressions(failing: set[int], tmp_path: Path, compression: str):
    write_partition(tmp_path / "log" / "orders-0")
    to_parquet(NoJob(), str(tmp_path / "log"), str(tmp_path / "output"), compression=compression)
    (file,) = (tmp_path / "output").rglob("*.parquet")
    used = pq.ParquetFile(file).metadata.row_group(0).column(0).compression
    assert used.lower() == {"none": "uncompressed"}.get(compression, compression)


def test_a_lock_that_was_taken_away_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first export ends just after the second has opened its lock."""
    first = only_writer(tmp_path)
    first.__enter__()
    (tmp_path / "_kraftlog" / "staged").mkdir()
    flock, waiting = fcntl.flock, [first]

    def ends_before(file: Any, operation: int) -> None:
        if waiting:
            waiting.pop().__exit__(None, None, None)
        flock(file, operation)

    monkeypatch.setattr(export_publish.fcntl, "flock", ends_before)
    with only_writer(tmp_path):
        assert not waiting
        with pytest.raises(FileExistsError, match="another export is writing there"), only_writer(tmp_path):
            pass
