"""The cleaner on random logs: a read_committed consumer gets the same last value of each key before and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.tables.producer_tables import producer_states
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from kraftlog.write.replaced_segments import replace_segments, write_cleaned
from random_log import START, RandomLog, Row, latest

SEGMENT_BYTES = 1 << 20
DAY = 86_400_000


def visible(folder: Path) -> list[Row]:
    log = kraftlog.open(folder)
    table = log.records(["offset", "key", "value"], isolation_level="read_committed", strict=True).to_table()
    return list(zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True))


def clean(folder: Path, count: int, now: int, delete_retention_ms: int, dirty_offset: int = 0) -> None:
    """Clean the first segments of a folder and put them in place."""
    log = PartitionFolder.of(folder).segments
    options = CleanOptions(now, delete_retention_ms, SEGMENT_BYTES, dirty_offset)
    cleaner = LogCleaner(log, count, producer_states(log, ReadOptions(), []), options)
    for group in cleaner.groups():
        replace_segments(folder, write_cleaned(folder, group[0].base_offset or 0, cleaner.cleaned(group)), group)


@pytest.mark.parametrize("kinds", [(), ("index",), ("txnindex",), ("snapshot",)], ids="without {}".format)
@pytest.mark.parametrize("seed", range(12))
def test_the_last_committed_value_of_each_key_stays(tmp_path: Path, seed: int, kinds: tuple[str, ...]):
    """Wherever transactions end: in a cleaned segment, in a later closed one, or in the last one.

    Without an ``.index``, or a ``.snapshot`` beside a segment, headers say how they ended.
    """
    log = RandomLog(tmp_path / "t-0", seed)
    if kinds:
        for path in [path for path in log.folder.iterdir() if path.suffix in (f".{kinds[0]}", ".index")]:
            path.unlink()
    assert latest(visible(log.folder)) == log.latest()
    ends = log.base_offsets[1:]
    stable = sum(end <= log.last_stable_offset for end in ends)
    dirty = 0
    for turn, count in enumerate((stable // 2, stable)):
        base = ends[count - 1] if count else 0
        left = PartitionFolder.of(log.folder).segments
        count = sum((segment.base_offset or 0) < base for segment in left)
        clean(log.folder, count, START + (turn + 1) * DAY, [0, DAY][seed % 2], dirty)
        dirty = base
        assert latest(visible(log.folder)) == log.latest(), f"turn {turn}"


def test_without_the_end_of_a_transaction_nothing_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A later segment that cannot be read may hold an ABORT: the cleaner refuses."""
    log = next(one for seed in range(100) if ends_behind(one := RandomLog(tmp_path / f"t-{seed}", seed)))
    (log.folder / f"{log.base_offsets[1]:020d}.snapshot").unlink(missing_ok=True)
    for path in log.folder.glob("*.index"):
        path.unlink()
    segments = PartitionFolder.of(log.folder).segments
    unreadable, opened = segments[1].path, type(disk()).open

    def refuse(self: object, path: Path, *rest: object) -> object:
        if path == unreadable:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(self, path, *rest)

    monkeypatch.setattr(type(disk()), "open", refuse)
    with pytest.raises(CorruptRecordError, match="cannot be read"):
        LogCleaner(segments, 1, [], CleanOptions(START, 0, SEGMENT_BYTES))


def ends_behind(log: RandomLog) -> bool:
    """Whether a transaction of the first segment ends in the next one, by its ``.txnindex``."""
    if len(log.base_offsets) < 2:
        return False
    path = log.folder / f"{log.base_offsets[1]:020d}.txnindex"
    return path.exists() and any(
        int.from_bytes(path.read_bytes()[at + 10 : at + 18], "big") < log.base_offsets[1]
        for at in range(0, path.stat().st_size, 34)
    )
