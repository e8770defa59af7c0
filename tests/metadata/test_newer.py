"""What is newer than all that is known is never safe: one above the newest level, feature, record type and release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.metadata_version import NEWEST_LEVEL, metadata_version_level, metadata_version_name
from kraftlog.coordinator.downgrade_check import downgrade_check
from kraftlog.coordinator.record_counts import RecordCounts, TagKind
from kraftlog.coordinator.releases import NEWEST_RELEASE, readers, release_of
from kraftlog.errors import RecordError
from kraftlog.layout.discover import discover
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata import levels
from kraftlog.metadata.downgrade import downgrade_report
from kraftlog.metadata.schemas import schema_of
from kraftlog.metadata_log.image import image_at
from kraftlog.write.metadata_writer import MetadataLogWriter

Command = Callable[..., Any]
FEATURE = "FeatureLevelRecord"
NEXT_LEVEL = NEWEST_LEVEL + 1
NEXT_TYPE = max(BUILT_IN.formats["metadata"].types) + 1
MAJOR, MINOR = map(int, NEWEST_RELEASE.split("."))
NEXT_RELEASE = f"{MAJOR}.{MINOR + 1}"
NEXT_FEATURES = [
    *(
        (name, max(level for other, level in levels.FEATURE_LEVELS if other == name) + 1)
        for name, _ in levels.FEATURE_LEVELS
    ),
    ("a.new.version", 1),
]


def feature(name: str, level: int) -> bytes:
    definition = BUILT_IN.messages[FEATURE]
    assert definition.api_key is not None
    rows = pa.Table.from_pylist([{"name": name, "feature_level": level}], schema_of(FEATURE))
    (value,) = encode_messages(definition, 0, rows, prefix=frame(definition.api_key, 0)).to_pylist()
    return bytes(value)


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return a copy of a log at the newest known level, or another one, with one more record."""

    def with_record(record: bytes, level: int = NEWEST_LEVEL) -> Path:
        folder = tmp_path / "log" / "__cluster_metadata-0"
        shutil.copytree(GOLDEN / "metadata" / "log" / "__cluster_metadata-0", folder)
        with MetadataLogWriter(folder, leader_epoch=None) as writer:
            writer.append([feature("metadata.version", level)])
            writer.append([record])
        return folder.parent

    return with_record


CASES = {
    "level": (feature("metadata.version", NEXT_LEVEL), str(NEXT_LEVEL)),
    "feature level": (feature("group.version", 2), "level 2 of group.version"),
    "feature": (feature("a.new.version", 1), "level 1 of a.new.version"),
}
MARKERS = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}  # a writer takes none
NEXT_RECORD = frame(NEXT_TYPE, 0) + b"\0"


@pytest.mark.parametrize("case", CASES)
def test_a_downgrade_wants_force(
    kraftlog_command: Command, log: Callable[..., Path], tmp_path: Path, case: str
) -> None:
    """Also to a level between which metadata did not change; nothing is written without --unsafe, and it is named."""
    record, named = CASES[case]
    folder, target = log(record), tmp_path / "out"
    for to in ("4.4-IV1", "4.3", "4.2") if case != "level" else ("4.4", "4.3"):
        done = kraftlog_command("downgrade", folder, "--to", to, "--write", target)
        assert done.returncode == 1
        assert "unknown" in done.stderr
        assert named in done.stderr
        assert "nothing was written; --unsafe writes it nevertheless" in done.stderr
        assert not target.exists()
    assert kraftlog_command("downgrade", folder, "--to", to, "--write", target, "--unsafe").returncode == 0
    assert list(target.rglob("*.checkpoint"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to", ["4.4", "4.4.0", "4.3", "3.9"])
def test_the_check_names_it(kraftlog_command: Command, log: Callable[..., Path], to: str, case: str) -> None:
    """Whichever release is asked for."""
    record, named = CASES[case]
    done = kraftlog_command("downgrade", log(record), "--to", to, "--format", "jsonl")
    assert done.returncode == 1
    assert named in done.stdout + done.stderr
    outcomes = {json.loads(line)["outcome"] for line in done.stdout.splitlines()}
    assert "unknown" in done.stderr or "fails" in outcomes


def test_what_is_known_is_safe(kraftlog_command: Command, log: Callable[..., Path]) -> None:
    """The newest level itself, and every known level of every feature."""
    done = kraftlog_command("downgrade", log(feature("group.version", 1)), "--to", NEWEST_RELEASE)
    assert (done.returncode, done.stderr) == (0, f"{NEWEST_RELEASE}.0: reads all records\n")
    known = [{"name": name, "feature_level": level} for name, level in levels.FEATURE_LEVELS]
    table = {FEATURE: pa.Table.from_pylist(known, schema_of(FEATURE))}
    assert downgrade_report(table, levels.level_of("4.1"), levels.level_of("4.0")).verdict == "safe"


@pytest.mark.parametrize("to_level", range(levels.OLDEST_LEVEL, NEXT_LEVEL))
def test_no_level_is_safe_from_the_next_one(to_level: int) -> None:
    """It may have changed metadata, and most certainly so when it is newer still."""
    for above in (1, 2, 100):
        report = downgrade_report({}, NEWEST_LEVEL + above, to_level)
        assert (report.verdict, report.is_lossless) == ("unknown", False)
        assert str(NEWEST_LEVEL + above) in report.reasons[0]
        assert metadata_version_name(NEWEST_LEVEL) in report.reasons[0]


@pytest.mark.parametrize(("name", "level"), sorted(set(NEXT_FEATURES)))
def test_the_next_level_of_each_feature(name: str, level: int) -> None:
    """It is unknown where metadata did not change, too, and listed."""
    table = {FEATURE: pa.Table.from_pylist([{"name": name, "feature_level": level}], schema_of(FEATURE))}
    for before, after in (("4.1", "4.0"), ("4.4", "4.2")):
        report = downgrade_report(table, levels.level_of(before), levels.level_of(after))
        assert (report.verdict, report.is_lossless) == ("unknown", False)
        assert f"level {level} of {name}" in report.reasons[0]
        assert [(row["key"], row["outcome"]) for row in report.table.to_pylist()] == [(name, "unknown")]


@pytest.mark.sweep(10)
@pytest.mark.parametrize(
    ("record", "named"),
    [
        (NEXT_RECORD, f"unknown type {NEXT_TYPE}"),
        *(
            (frame(api_key, each.value.versions.last + 1) + b"\0" * 64, f"version {each.value.versions.last + 1} of")
            for api_key, each in BUILT_IN.formats["metadata"].types.items()
            if each.value is not None and each.name not in MARKERS
        ),
    ],
)
def test_no_downgrade_is_safe_of_a_log_with_a_record_of_the_next_type_or_version(
    log: Callable[..., Path], record: bytes, named: str
) -> None:
    """Nor where metadata did not change between the levels: the image lacks what the record says."""
    from_level, to_level = levels.level_of("4.2"), levels.level_of("4.1")
    segments = discover(log(record, from_level)).segments
    image = image_at(segments, None, faults := []).image
    assert downgrade_report(image.tables(), from_level, to_level).verdict == "safe"
    report = downgrade_report(image.tables(), from_level, to_level, [fault.message for fault in faults])
    assert (report.verdict, report.is_lossless) == ("unknown", False)
    assert named in report.reasons[0]


@pytest.mark.parametrize("options", [[], ["--write"], ["--write", "--unsafe"]], ids=" ".join)
def test_commands_call_no_such_downgrade_safe(
    kraftlog_command: Command, log: Callable[..., Path], tmp_path: Path, options: list[str]
) -> None:
    folder, output = log(NEXT_RECORD, levels.level_of("4.2")), tmp_path / "out"
    target = [output] if options else []
    done = kraftlog_command("downgrade", folder, "--to", "4.1", *options[:1], *target, *options[1:])
    assert done.returncode == 1
    assert "metadata.version 4.2-IV1 to 4.1-IV1: unknown" in done.stderr
    assert f"unknown type {NEXT_TYPE}" in done.stderr
    assert "safe" not in done.stderr
    assert not output.exists()


def test_the_next_record_type_of_metadata(log: Callable[..., Path], tmp_path: Path, kraftlog_command: Command) -> None:
    """An image that lacks what it says is not whole, and no snapshot is made of it, not even with --unsafe."""
    folder, target = log(NEXT_RECORD), tmp_path / "out"
    with pytest.raises(RecordError, match=f"unknown type {NEXT_TYPE}"):
        kraftlog.open(folder).image()
    for options in ([], ["--write", target], ["--write", target, "--unsafe"]):
        done = kraftlog_command("downgrade", folder, "--to", "4.3", *options)
        assert done.returncode == 1
        assert f"unknown type {NEXT_TYPE}" in done.stderr
        assert not target.exists()


@pytest.mark.parametrize("format_name", ["consumer_offsets", "transaction_state", "share_group_state", "metadata"])
def test_the_next_record_type_version_and_tag(format_name: str) -> None:
    """No release reads them, the newest one neither."""
    newest = release_of(NEWEST_RELEASE)
    known = readers(format_name, newest)
    api_key = max(known)
    version = known[api_key].versions.last
    for key, value_version, tag, outcomes in (
        (max(BUILT_IN.formats[format_name].types) + 1, 0, None, {"skipped", "fails"}),
        (api_key, version + 1, None, {"fails"}),
        (api_key, version, 99, {"unknown"}),
    ):
        counts = RecordCounts()
        if tag is None:
            counts.add(*_one(key), *_one_of(value_version), unknown_type=-7)
        else:
            counts.add_tag(TagKind(key, value_version, "", tag, ""), _one(0)[0])
        (row,) = downgrade_check(format_name, {("topic", 0): counts}, newest).to_pylist()
        assert row["outcome"] in outcomes


def _one(number: int) -> tuple[Any]:
    return (pa.array([number], pa.int32()).to_numpy(),)


def _one_of(version: int) -> tuple[Any, Any, Any]:
    return _one(version)[0], _one(0)[0].astype(bool), _one(0)[0].astype("i8")


def test_the_next_release(kraftlog_command: Command, log: Callable[..., Path]) -> None:
    """What it reads is not known: wrong usage, which says what is."""
    with pytest.raises(ValueError, match=NEXT_RELEASE):
        release_of(NEXT_RELEASE)
    folder = log(feature("group.version", 1))
    for options in ([], ["--write", folder.parent / "out"]):
        done = kraftlog_command("downgrade", folder, *options, "--to", NEXT_RELEASE)
        assert done.returncode == 2
        assert NEXT_RELEASE in done.stderr


def test_what_is_written_at_a_level_that_is_not_known(
    log: Callable[..., Path], tmp_path: Path, kraftlog_command: Command
) -> None:
    """Nothing: a snapshot would lack what is new, and a writer would not know what it may write."""
    with pytest.raises(ValueError, match=str(NEXT_LEVEL)):
        metadata_version_level(NEXT_LEVEL)
    done = kraftlog_command("image", log(CASES["level"][0]), "--snapshot", tmp_path / "out")
    assert done.returncode == 2
    assert f"metadata.version {NEXT_LEVEL}" in done.stderr
    assert not list(tmp_path.glob("out/*"))
