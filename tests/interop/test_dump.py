"""``kraftlog dump`` prints what kafka-dump-log prints, byte for byte, of every golden file and with every option."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jvm import Jvm
from kafka_tool import Ran, run_tool

from golden_files import GOLDEN
from kraftlog.cli.dump import dump

TOOL = "org.apache.kafka.tools.DumpLogSegments"
OF_LOGS = [
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--deep-iteration", "--skip-record-metadata"],
    ["--print-data-log", "--max-bytes", "1000"],
    ["--max-bytes", "0"],
    ["--offsets-decoder"],
    ["--transaction-log-decoder"],
    ["--cluster-metadata-decoder"],
    ["--cluster-metadata-decoder", "--skip-record-metadata"],
    ["--remote-log-metadata-decoder"],
    ["--share-group-state-decoder"],
    ["--offsets-decoder", "--cluster-metadata-decoder"],
    ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"],
]
OF_INDEXES = [[], ["--index-sanity-check"], ["--verify-index-only"]]
LOGS, INDEXES = {".log", ".checkpoint"}, {".index", ".timeindex", ".txnindex", ".snapshot"}
LEAST_LOGS, LEAST_INDEXES = 400, 1300
ENDS = ("\nbaseOffset: ", "\noffset: ")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the golden files: beside a ``.timeindex`` kafka-dump-log makes the ``.index`` that is not there."""
    return Path(shutil.copytree(GOLDEN, tmp_path_factory.mktemp("dump") / "golden"))


def files(golden: Path, endings: set[str]) -> list[str]:
    """Return every golden file with one of these endings that Kafka 4.3 reads.

    What Aiven's plugin stores under them is no log or index; ``unregistered`` has a record of 4.4, whose tool's answer
    stands beside it.
    """
    found = [path for path in golden.rglob("*") if path.suffix in endings]
    return sorted(
        str(path) for path in found if path.relative_to(golden).parts[0] not in ("aiven_tier", "unregistered")
    )


def run_ours(arguments: Sequence[str]) -> Ran:
    """Run ``kraftlog dump``."""
    out, err = io.StringIO(newline=""), io.StringIO(newline="")
    if "--cluster-metadata-decoder" in arguments:  # Kafka's tool shows them
        arguments = [*arguments, "--show-secrets"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        dump(list(arguments), standalone_mode=False)
    return Ran(out.getvalue(), err.getvalue().split("\n"), int(str(end.value.code)))


def check(ours: Ran, kafka: Ran, what: object) -> None:
    """Compare both; where Kafka died kraftlog reads on, and what Kafka printed before its last batch is the same."""
    if kafka.code == 0:
        assert ours.output == kafka.output, what
        assert [line for line in ours.errors if line in kafka.errors] == kafka.errors, what
        return
    assert ours.code == 1 or ours.output.startswith(kafka.output), what
    whole = max(kafka.output.rfind(end) for end in ENDS)
    assert ours.output.startswith(kafka.output[: max(0, whole)]), what


@pytest.mark.parametrize("options", OF_LOGS, ids=" ".join)
def test_logs(java: Jvm, golden: Path, options: list[str], sampled: Callable[..., list[list[str]]]) -> None:
    """Batches, records, control records, keys and values, and jumps of offsets on standard error."""
    runs = [["--files", file, *options] for file in files(golden, LOGS)]
    assert len(runs) > LEAST_LOGS
    runs = sampled(runs, LEAST_LOGS // 4)
    answers = run_tool(java, TOOL, runs)
    assert sum(answer.code == 0 for answer in answers) > len(runs) // 3
    for run, kafka in zip(runs, answers, strict=True):
        check(run_ours(run), kafka, run)


@pytest.mark.parametrize("options", OF_INDEXES, ids=" ".join)
def test_index_files(java: Jvm, golden: Path, options: list[str], sampled: Callable[..., list[list[str]]]) -> None:
    """Entries and producers, and on standard error what differs from the log."""
    runs = [["--files", file, *options] for file in files(golden, INDEXES)]
    assert len(runs) > LEAST_INDEXES
    runs = sampled(runs, LEAST_INDEXES // 4)
    for run, kafka in zip(runs, run_tool(java, TOOL, runs), strict=True):
        check(run_ours(run), kafka, run)


def test_index_files_that_differ(java: Jvm, tmp_path: Path) -> None:
    """Entries that point at another batch, and timestamps that are not those of the log."""
    source = GOLDEN / "transactions" / "log" / "orders-0"
    for kind in ("log", "index", "timeindex"):
        data = bytearray((source / f"{0:020}.{kind}").read_bytes())
        if kind == "index":
            data[3] += 1  # the last byte of the first offset
        if kind == "timeindex":
            data[7] += 1  # of the first timestamp
            data[12:24], data[24:36] = data[24:36], data[12:24]
        (tmp_path / f"{0:020}.{kind}").write_bytes(data)
    runs = [["--files", str(tmp_path / f"{0:020}.{kind}")] for kind in ("index", "timeindex")]
    for run, kafka in zip(runs, run_tool(java, TOOL, runs), strict=True):
        assert len(kafka.errors) > 1
        check(run_ours(run), kafka, run)


def test_many_files(java: Jvm, golden: Path) -> None:
    """One after the other, what is told of them behind all."""
    folder = golden / "transactions" / "log" / "orders-0"
    several = ",".join(str(path) for path in sorted(folder.iterdir()) if path.suffix in LOGS | INDEXES)
    run = ["--print-data-log", "--files", several]
    (kafka,) = run_tool(java, TOOL, [run])
    ours = run_ours(run)
    assert (ours.output, ours.code) == (kafka.output, kafka.code)
    assert sorted(filter(None, ours.errors)) == sorted(kafka.errors)  # Kafka's order of files is that of a HashMap
