"""How logs and streams show themselves, and what rows become."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN

LOG = GOLDEN / "transactions" / "log"
BROKER = json.loads((GOLDEN / "transactions" / "expected" / "broker_state.json").read_text())


class Cells(HTMLParser):
    """The texts of the cells of a table, row by row; each tag must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


WITH_BROKER = sorted(
    path for path in GOLDEN.glob("*/expected/broker_state.json") if "high_watermark" in path.read_text()
)


@pytest.mark.parametrize("path", WITH_BROKER, ids=lambda path: path.parents[1].name)
def test_offsets_are_those_of_the_broker(path: Path):
    answers = json.loads(path.read_text())["partitions"]
    log = kraftlog.open(path.parents[1] / "log")
    found = {f"{each.topic}-{each.partition}": (each.start_offset, each.end_offset) for each in log.partitions}
    expected = {name: (one["log_start_offset"], one["high_watermark"]) for name, one in answers.items()}
    assert found.items() & expected.items()
    assert {name: found[name] for name in found.keys() & expected.keys()} == {
        name: expected[name] for name in found.keys() & expected.keys()
    }
    assert log.topics == sorted({name.rpartition("-")[0] for name in found})


def test_a_log_shows_its_partitions():
    log = kraftlog.open(LOG)
    first, *lines = repr(log).splitlines()
    sizes = {folder.name: sum(path.stat().st_size for path in folder.glob("*.log")) for folder in LOG.glob("*-*[0-9]")}
    assert first == f"<kraftlog.Log: 3 topics, 6 partitions, 9 segments, {sum(sizes.values())} bytes>"
    rows = [line.split() for line in lines]
    assert lines[0] == "topic                partition  segments  bytes  start offset  end offset"
    for topic, partition, segments, size, start, end in rows[1:]:
        folder = LOG / f"{topic}-{partition}"
        assert int(segments) == len(list(folder.glob("*.log")))
        assert int(size) == sizes[folder.name]
        state = BROKER["partitions"].get(folder.name)
        assert state is None or (int(start), int(end)) == (state["log_start_offset"], state["high_watermark"])
    cells = Cells(log._repr_html_()).rows
    assert cells == [["topic", "partition", "segments", "bytes", "start offset", "end offset"], *rows[1:]]
    assert repr(log.partitions[-1]) == f"<Partition orders-2: 1 segment, {sizes['orders-2']} bytes>"


def test_names_cannot_change_a_page(tmp_path: Path):
    path = tmp_path / "<b>.log"
    path.write_bytes((GOLDEN / "damaged/good/log/t-0/00000000000000000000.log").read_bytes())
    log = kraftlog.open(path)
    assert "<b>" not in log._repr_html_()
    assert Cells(log._repr_html_()).rows[1] == ["<b>.log", "-", "1", "1032", "-", "18"]
    assert (log.topics, log.partitions[0].topic, log.partitions[0].start_offset) == ([], None, None)


def test_ten_partitions_are_shown(tmp_path: Path):
    for number in range(12):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        (folder / "00000000000000000000.log").write_bytes(b"")
    log = kraftlog.open(tmp_path)
    assert repr(log).splitlines()[-1] == "and 2 more partitions"
    assert "<p>and 2 more partitions</p>" in log._repr_html_()
    assert len(log.partitions) == 12
    (tmp_path / "t-3" / "00000000000000000000.log").unlink()  # a file that has gone since is no error of a display
    assert len(repr(log).splitlines()) == 13


def test_a_stream_shows_its_columns():
    stream = kraftlog.open(LOG).records(["offset", "headers"])
    assert repr(stream) == "<Stream: offset int64, headers list<item: struct<key: string, value: binary>>>"
    rows = Cells(stream._repr_html_()).rows
    assert rows == [
        ["column", "type"],
        ["offset", "int64"],
        ["headers", "list<item: struct<key: string, value: binary>>"],
    ]


def test_what_rows_become():
    stream = kraftlog.open(LOG).records(["offset", "key", "timestamp"])
    table = stream.to_table()
    assert pa.Table.from_batches(stream).equals(table)
    assert pa.Table.from_batches(stream).equals(table)  # from the start again
    polars = pytest.importorskip("polars")
    frame = stream.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_arrow().cast(table.schema).equals(table)
    pandas = pytest.importorskip("pandas")
    frame = stream.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert pa.Table.from_pandas(frame, table.schema).replace_schema_metadata(None).equals(table)


def test_a_relation_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    stream = kraftlog.open(LOG).records(["topic", "offset"])
    counts = stream.to_table().column("topic").value_counts()
    expected = sorted((one["values"], one["counts"]) for one in counts.to_pylist())
    with duckdb.connect() as connection:
        relation = stream.to_duckdb(connection)
        for _ in range(2):
            assert sorted(relation.aggregate("topic, count(*)").fetchall()) == expected
    assert sorted(stream.to_duckdb().aggregate("topic, count(*)").fetchall()) == expected


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str):
    class Missing:
        @staticmethod
        def find_spec(wanted: str, *_: object) -> None:
            if wanted == name:
                raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted)

    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing, *sys.meta_path])
    stream = kraftlog.open(LOG).records(["offset"])
    with pytest.raises(ImportError, match=f"to_{name} needs {name}, which is not installed: pip install {name}"):
        getattr(stream, f"to_{name}")()
