"""dump, verify, stats, the help texts, and how output ends."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN

ROOT = Path(__file__).parents[2]
DUMPS = json.loads(gzip.decompress((GOLDEN / "damaged" / "dump_log.json.gz").read_bytes()))
SAME_AS_KAFKA = [
    "bit_flip_base_offset",
    "bit_flip_crc_field",
    "bit_flip_leader_epoch",
    "bit_flip_payload",
    "empty_file",
    "good",
    "last_offset_delta_negative",
    "last_offset_delta_too_large",
    "magic_127",
    "magic_3",
    "magic_9",
    "offsets_go_back",
    "rec_header_key_not_utf8",
    "rec_header_value_minus_2",
    "rec_key_length_minus_2",
    "rec_offsets_not_rising",
    "rec_record_ok",
    "rec_value_length_minus_7",
    "truncated_17_bytes_of_header",
    "truncated_in_last_records",
    "unknown_attribute_bits",
    "zero_tail_small",
]


@pytest.mark.parametrize("case", SAME_AS_KAFKA)
def test_dump_is_that_of_kafka(kraftlog_command, case: str):
    """The text is equal; Kafka prints jumps of offsets in no fixed order."""
    folder = GOLDEN / "damaged" / case
    done = kraftlog_command("dump", "--print-data-log", "log/t-0/00000000000000000000.log", cwd=folder)
    told = done.stderr.replace(f"{folder.resolve()}/", "").splitlines()
    jumps = [line for line in told if line.startswith("Non-consecutive") or " is followed by " in line]
    assert sorted(done.stdout.splitlines() + jumps) == sorted(DUMPS[case].splitlines())


def test_dump_of_markers_and_batches(kraftlog_command):
    partition = GOLDEN / "transactions" / "log" / "orders-0"
    deep = kraftlog_command("dump", "--deep-iteration", partition).stdout
    markers = [line for line in deep.splitlines() if "endTxnMarker" in line]
    assert markers[0].endswith(
        "keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 0"
    )
    assert "payload" not in deep
    shallow = kraftlog_command("dump", partition).stdout
    assert [line for line in deep.splitlines() if not line.startswith("|")] == shallow.splitlines()


def test_dump_of_other_files(kraftlog_command):
    folder = GOLDEN / "transactions" / "log" / "orders-0"
    answer = json.loads((GOLDEN / "transactions" / "expected" / "indexes.json").read_text())
    index = kraftlog_command("dump", folder / "00000000000000000000.index").stdout.splitlines()[1:]
    entries = answer["orders-0/00000000000000000000.index"]["entries"]
    assert index == [f"offset: {offset} position: {position}" for offset, position in entries]
    snapshot = next(path for path in folder.glob("*.snapshot") if answer[f"orders-0/{path.name}"]["producers"])
    producers = answer[f"orders-0/{snapshot.name}"]["producers"]
    printed = kraftlog_command("dump", snapshot).stdout.splitlines()[1:]
    assert [int(line.split()[1]) for line in printed] == [producer["producer_id"] for producer in producers]
    aborted = kraftlog_command("dump", folder / "00000000000000000000.txnindex").stdout.splitlines()[1:]
    assert len(aborted) == len(answer["orders-0/00000000000000000000.txnindex"]["aborted"])


def test_dump_of_legacy_and_control(kraftlog_command):
    legacy = kraftlog_command("dump", "--print-data-log", GOLDEN / "legacy" / "log" / "v1-none-0").stdout
    assert legacy.splitlines()[2].startswith("offset: 0 position: 0 CreateTime: ")
    raft = kraftlog_command("dump", "--deep-iteration", GOLDEN / "schema_all" / "log" / "raft-control-0").stdout
    assert ' LeaderChange: {"version":0,"leaderId":28092,"voters":[{"voterId":64354' in raft


@pytest.mark.parametrize("before_end", [5, 12, 13, 100])
def test_verify_of_the_last_offsets(kraftlog_command, before_end: int):
    """A negative start counts from the end, offset 18, as for other commands; the damaged batch has offset 5."""
    log = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    done = kraftlog_command("verify", log, "--start-offset", -before_end, "--format", "jsonl")
    same = kraftlog_command("verify", log, "--start-offset", max(18 - before_end, 0), "--format", "jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (same.returncode, same.stdout, same.stderr)
    assert done.returncode == (1 if before_end > 12 else 0)


def test_verify(kraftlog_command):
    sound = kraftlog_command("verify", GOLDEN / "transactions" / "log")
    assert (sound.returncode, sound.stderr) == (0, "88181 bytes in 9 segments: no errors\n")
    broken = kraftlog_command("verify", GOLDEN / "damaged" / "offsets_go_back" / "log", "--format", "jsonl")
    assert broken.returncode == 1
    assert [json.loads(line)["error"] for line in broken.stdout.splitlines()] == ["offset_goes_back"]
    assert broken.stderr.endswith("1 offset_goes_back\n")


def test_stats(kraftlog_command):
    folder = GOLDEN / "codecs" / "log"
    done = kraftlog_command("stats", folder, "--topic", "codec-gzip", "--format", "jsonl", "--decompress")
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["batches"], row["records"], row["size_in_bytes"]) == (30, 782, 32205 + 23424)
    assert row["compression"] == "gzip"
    assert row["mean_batch_bytes"] == 1854.3
    assert 1.0 < row["compression_ratio"] < 10
    headers_only = kraftlog_command("stats", folder, "--topic", "codec-gzip", "--format", "jsonl").stdout
    assert json.loads(headers_only) == row | {"compression_ratio": None}
    orders = GOLDEN / "transactions" / "log"
    producers = kraftlog_command("stats", orders, "--topic", "orders", "--by", "producer", "--format", "jsonl").stdout
    partitions = kraftlog_command("stats", orders, "--topic", "orders", "--format", "jsonl").stdout
    total = [sum(json.loads(line)["records"] for line in text.splitlines()) for text in (producers, partitions)]
    assert total == [237, 237]


def test_closed_pipe_ends_quietly():
    program = Path(sys.executable).parent / "kraftlog"
    folder = GOLDEN / "codecs" / "log"
    command = f"set -o pipefail; {program} records {folder} --format jsonl | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


def test_output_may_not_lie_in_what_is_read(kraftlog_command, tmp_path: Path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    log = folder / "00000000000000000000.log"
    log.write_bytes((GOLDEN / "damaged" / "good" / "log" / "t-0" / log.name).read_bytes())
    for command in ("records", "verify", "stats", "segments"):
        done = kraftlog_command(command, log, "--format", "jsonl", "--output", log)
        assert done.returncode == 2
        assert "which is being read; choose another folder" in done.stderr
    assert log.stat().st_size == 1032
    assert kraftlog_command("stats", log, "--columns", "nope").returncode == 2
    assert kraftlog_command("verify", log, "--columns", "nope").returncode == 2
    assert kraftlog_command("records", log, "--start-offset", "9" * 20).returncode == 2


def test_text_of_tables_and_csv_is_that_of_the_values(kraftlog_command, tmp_path: Path):
    import pyarrow as pa

    values = [b":warning: x\\", b"[bold]", None, b"", b'a"b,c']
    path = tmp_path / "a.log"
    path.write_bytes(kraftlog.encode(pa.table({"value": values})).to_pybytes())
    table = kraftlog_command("records", path, "--columns", "value", "--format", "table").stdout
    assert [line.strip() for line in table.splitlines()] == ["value", ":warning: x\\", "[bold]", "-", "", 'a"b,c']
    text = kraftlog_command("records", path, "--columns", "offset,value", "--binary", "utf8", "--format", "csv").stdout
    assert text.splitlines() == ["offset,value", "0,:warning: x\\", "1,[bold]", "2,", '3,""', '4,"a""b,c"']


def test_dump_of_a_glob(kraftlog_command):
    pattern = GOLDEN / "codecs" / "log" / "codec-lz4-0" / "*.log"
    assert kraftlog_command("dump", pattern).stdout.count("baseOffset") == 30


def test_compressed_messages_of_old_formats_are_not_counted(kraftlog_command):
    done = kraftlog_command(
        "stats", GOLDEN / "legacy" / "log" / "v1-gzip-0", "--columns", "records", "--format", "jsonl"
    )
    assert done.stdout == '{"records":null}\n'
