"""``kraftlog pack``: what ``kraftlog records`` shows goes in, and comes out again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.schema import HEADERS

COLUMNS = "key,value,offset,timestamp,headers"


def golden_logs() -> list[Path]:
    found = sorted((GOLDEN / "codecs" / "log").glob("codec-*-0"))
    assert len(found) >= 5
    return found


def packed_rows(path: Path) -> list[dict]:
    return kraftlog.open(path).records(columns=COLUMNS.split(","), strict=True).to_table().to_pylist()


@pytest.mark.parametrize("log", golden_logs(), ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("form", "binary"), [("jsonl", "base64"), ("jsonl", "hex"), ("jsonl", "text"), ("parquet", "text")]
)
def test_records_come_back(kraftlog_command, tmp_path: Path, log: Path, form: str, binary: str):
    source, target = tmp_path / f"in.{form}", tmp_path / "out.log"
    done = kraftlog_command("records", log, "--format", form, "--binary", binary, "--output", source)
    assert done.returncode == 0, done.stderr
    first = kraftlog.open(log).records(columns=["offset"]).to_table()["offset"][0].as_py()
    done = kraftlog_command("pack", source, "--output", target, "--binary", binary, "--base-offset", first)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert packed_rows(target) == packed_rows(log)
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, "out.log"]


def test_a_pipe_gives_text_and_takes_it(kraftlog_command, tmp_path: Path):
    """Text is text, other bytes are marked; what a command takes from a pipe is what was there."""
    lines = [
        {"key": "k", "value": "grüße", "headers": []},
        {"key": None, "value": {"base64": "//4="}, "headers": [{"key": "h", "value": {"base64": "gA=="}}]},
    ]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    assert kraftlog_command("pack", "-", "--output", tmp_path / "o.log", given=given).returncode == 0
    shown = kraftlog_command("records", tmp_path / "o.log", "--columns", "key,value,headers").stdout
    assert [json.loads(line) for line in shown.splitlines()] == lines
    assert '"value":"grüße"' in shown
    csv = kraftlog_command("records", tmp_path / "o.log", "--columns", "value", "--format", "csv").stdout
    assert csv == "value\ngrüße\nbase64://4=\n"
    hex_ = kraftlog_command("pack", "-", "--binary", "hex", "--output", tmp_path / "h.log", given='{"value":"fffe"}')
    assert hex_.returncode == 0
    assert packed_rows(tmp_path / "h.log")[0]["value"] == b"\xff\xfe"


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_options(kraftlog_command, tmp_path: Path, compression: str):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.log"
    source.write_text('{"key":"k","value":"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"}\n' * 50)
    level = ["--compression-level", 5] if compression in ("gzip", "zstd") else []
    done = kraftlog_command(
        *("pack", source, "--output", target, "--binary", "utf8", "--compression", compression, *level),
        *("--max-batch-bytes", 1000, "--base-offset", 40, "--leader-epoch", 6, "--transactional"),
        *("--producer-id", 9, "--producer-epoch", 2, "--base-sequence", 11),
    )
    assert done.returncode == 0, done.stderr
    first, *_ = kraftlog.open(target).batches().to_pylist()
    assert first["compression"] == compression
    assert (first["base_offset"], first["partition_leader_epoch"], first["is_transactional"]) == (40, 6, True)
    assert (first["producer_id"], first["producer_epoch"], first["base_sequence"]) == (9, 2, 11)
    assert 1 < first["records_count"] < 50
    assert len(packed_rows(target)) == 50


def test_standard_input_in_bounded_pieces(kraftlog_command, tmp_path: Path):
    lines = "".join('{"value": "%d", "timestamp_ms": %d, "offset": 3}\n\n' % (i, i) for i in range(20_000))  # noqa: UP031
    done = kraftlog_command("pack", "-", "--output", tmp_path / "o.log", "--binary", "utf8", given=lines)
    assert done.returncode == 0, done.stderr
    rows = kraftlog.open(tmp_path / "o.log").records(columns=["offset", "value", "timestamp_ms"]).to_table()
    assert rows["offset"].to_pylist() == rows["timestamp_ms"].to_pylist() == list(range(20_000))
    assert rows["value"][-1].as_py() == b"19999"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "line 2: not JSON: Expecting value"),
        ("[1]", "line 2: not a JSON object"),
        ("{}", "line 2: none of the fields key, value"),
        ('{"offset": 3}', "line 2: none of the fields key, value"),
        ('{"vaule": "aa"}', "line 2: field 'vaule' is not a column of the table records"),
        ('{"value": {"base64": "a"}}', "line 2: field 'value': "),
        ('{"value": {"base64": "!!!!"}}', "line 2: field 'value': "),
        ('{"value": {"base64": "YQ==", "hex": ""}}', "line 2: field 'value': an object is"),
        ('{"key": 3}', "line 2: field 'key': it is not a text"),
        ('{"timestamp": "yesterday"}', "line 2: field 'timestamp': Invalid isoformat"),
        ('{"timestamp_ms": "1"}', "line 2: field 'timestamp_ms': it is not a number of milliseconds"),
        ('{"timestamp_ms": 9223372036854775808}', "line 2: field 'timestamp_ms': it is not"),
        ('{"headers": {}}', "line 2: field 'headers': it is not a list"),
        ('{"headers": null}', "line 2: field 'headers': it is not a list"),
        ('{"headers": [{"value": "aa"}]}', "line 2: field 'headers': it is not a text"),
    ],
)
def test_what_is_wrong_is_named(kraftlog_command, tmp_path: Path, line: str, message: str):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.log"
    source.write_text(f'{{"value": "aaaa"}}\n{line}\n')
    done = kraftlog_command("pack", source, "--output", target)
    assert done.returncode == 1
    assert done.stderr.startswith(f"kraftlog: {source}: {message}")
    assert not target.exists()
    assert list(tmp_path.iterdir()) == [source]


def test_a_record_that_is_too_large(kraftlog_command, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"value": "aaaa"}\n' + json.dumps({"value": "a" * 400}) + "\n")
    done = kraftlog_command("pack", tmp_path / "in.jsonl", "--output", tmp_path / "o.log", "--max-batch-bytes", 200)
    assert done.returncode == 1
    assert "record 1: a batch of it alone takes 470 bytes, max_batch_bytes is 200" in done.stderr
    assert not (tmp_path / "o.log").exists()


def test_files_are_not_replaced_unasked(kraftlog_command, tmp_path: Path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.log"
    source.write_text('{"value": "aaaa"}\n')
    target.write_text("precious")
    done = kraftlog_command("pack", source, "--output", target)
    assert (done.returncode, target.read_text()) == (2, "precious")
    assert "--force" in done.stderr
    source.write_text("nonsense")
    done = kraftlog_command("pack", source, "--output", target, "--force")
    assert (done.returncode, target.read_text()) == (1, "precious")
    assert kraftlog_command("pack", source, "--output", source, "--force").returncode == 2
    source.write_text('{"value": "aaaa"}\n')
    assert kraftlog_command("pack", source, "--output", target, "--force").returncode == 0
    assert [row["value"] for row in packed_rows(target)] == [b"aaaa"]
    source.write_text("")
    assert kraftlog_command("pack", source, "--output", target, "--force").returncode == 0
    assert target.read_bytes() == b""


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", [None, "a name"])
def test_a_metadata_transaction(kraftlog_command, tmp_path: Path, form: str, name: str | None):
    log = GOLDEN / "metadata" / "log" / "__cluster_metadata-0" / "00000000000000000378.log"
    source, target = tmp_path / f"in.{form}", tmp_path / "out.log"
    assert kraftlog_command("records", log, "--format", form, "--output", source).returncode == 0
    given = ["--metadata-transaction", *([name] if name else []), "--max-batch-bytes", 500]
    done = kraftlog_command("pack", source, "--output", target, "--base-offset", 7, "--leader-epoch", 3, *given)
    assert done.returncode == 0, done.stderr
    rows = kraftlog.open(target).records(columns=["value", "timestamp_ms", "offset"], strict=True).to_table()
    first, *values, last = rows["value"].to_pylist()
    assert (read_marker(first).text, read_marker(last).kind) == (name, "EndTransactionRecord")
    expected = kraftlog.open(log).records(columns=["value", "timestamp_ms"]).to_table()
    assert values == expected["value"].to_pylist()
    assert set(rows["timestamp_ms"].to_pylist()) == {expected["timestamp_ms"][0].as_py()}
    assert rows["offset"][0].as_py() == 7
    (headers,) = HeaderScan(target.read_bytes(), check_crc=True).headers()
    assert (
        headers["records_count"].tolist()
        == kraftlog.plan_batches([len(v) for v in (first, *values, last)], 500).tolist()
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"key": b"k", "value": b"v"}, "record 1: field 'key' is not null"),
        ({"value": None}, "record 1: field 'value' is null"),
        ({"value": b"v", "headers": [{"key": "h", "value": None}]}, "record 1: field 'headers' is not empty"),
        ({"value": b"\x01\x17\x00\x00"}, "record 1: it begins, ends or aborts a transaction"),
    ],
)
def test_what_is_no_metadata_record(kraftlog_command, tmp_path: Path, row: dict, message: str):
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])
    sound = {"key": None, "value": b"\x01\x02\x00", "headers": []}
    pq.write_table(pa.Table.from_pylist([sound, sound | row], schema), tmp_path / "in.parquet")
    done = kraftlog_command("pack", tmp_path / "in.parquet", "--output", tmp_path / "o.log", "--metadata-transaction")
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "o.log").exists()


def test_options_that_do_not_go_together(kraftlog_command, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"value": "aaaa"}\n')
    for option in (["--producer-id", 3], ["--compression", "lz4"], ["--transactional"]):
        done = kraftlog_command(
            "pack", tmp_path / "in.jsonl", "--output", tmp_path / "o.log", *option, "--metadata-transaction", "n"
        )
        assert done.returncode == 2
        assert "--metadata-transaction does not go with --" in done.stderr
    done = kraftlog_command("pack", tmp_path / "in.jsonl", "--output", tmp_path / "o.log", "--transactional")
    assert (done.returncode, done.stderr) == (2, "kraftlog: a transactional batch needs a producer_id\n")
    pq.write_table(pa.table({"number": [1]}), tmp_path / "in.parquet")
    done = kraftlog_command("pack", tmp_path / "in.parquet", "--output", tmp_path / "o.log")
    assert (
        done.stderr
        == f"kraftlog: {tmp_path / 'in.parquet'}: none of the columns key, value, timestamp, timestamp_ms, headers\n"
    )


def test_parquet_that_is_cut_short(kraftlog_command, tmp_path: Path):
    (tmp_path / "in.parquet").write_bytes(b"PAR1 and nothing else")
    done = kraftlog_command("pack", tmp_path / "in.parquet", "--output", tmp_path / "o.log")
    assert done.returncode == 1
    assert done.stderr.startswith(f"kraftlog: {tmp_path / 'in.parquet'}: ")
    assert kraftlog_command("pack", "-", "--output", tmp_path / "o", "--producer-epoch", 2**15).returncode == 2
