"""Following a metadata log: written in pieces, rolled, truncated and shortened, it says what the whole log says."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from change_logs import LOG, write
from change_twin import Block
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.metadata.diff.diff import diff_rows
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.changes import ChangeReader, Changes, changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.follow import follow
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.timeline import At, timeline

NOTHING = ImageAt(Image.empty(), -1, -1, -1)
SOURCE = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
COLUMNS = ["position", "size_in_bytes", "base_offset", "max_timestamp_ms"]


def rows_of(steps: Iterable[Changes]) -> list[dict[str, Any]]:
    return [row for some in steps for row in diff_rows(some.changed).to_pylist()]


@settings(max_examples=40, deadline=None)
@given(LOG, st.sampled_from([600, 2000]), st.lists(st.floats(0, 1), max_size=5), st.booleans())
def test_a_log_in_pieces_says_what_the_whole_says(
    blocks: list[Block], batch_bytes: int, cuts: list[float], ends_open: bool
) -> None:
    """Wherever it is cut: inside of a batch, and inside of a transaction."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "__cluster_metadata-0"
        write(folder, blocks, batch_bytes, ends_open=ends_open)
        (file,) = folder.iterdir()
        data = file.read_bytes()
        log = MetadataLog.open(folder)
        expected = rows_of(changes(log, NOTHING, None, []))
        reader, found = ChangeReader(NOTHING), list[dict[str, Any]]()
        for end in sorted([*(int(cut * len(data)) for cut in cuts), len(data)]):
            file.write_bytes(data[:end])
            found += rows_of(reader.read(MetadataLog.open(folder), None, []))
        assert found == expected
        assert reader.offset == log.end_offset - 1


def followed(folder: Path, steps: list[Callable[[], Any]]) -> list[list[At]]:
    """Return what is said before the first step, and after each of them."""
    found: list[list[At]] = [[]]
    left = iter(steps)

    def wait() -> bool:
        step = next(left, None)
        if step is not None:
            step()
            found.append([])
        return step is not None

    faults: list[Any] = []
    for at in follow(lambda: MetadataLog.open(folder), NOTHING, faults, wait):
        found[-1].append(at)
    assert faults == []
    return found


def whole(folder: Path, start: int = -1) -> list[At]:
    log = MetadataLog.open(folder)
    return list(timeline(log, image_at(log, start, []), None, []))


def batches() -> Iterator[tuple[int, int, bytes]]:
    """Return base offset, time and bytes of each batch of Kafka's log."""
    for file in sorted(SOURCE.glob("*.log")):
        data = file.read_bytes()
        for position, size, base_offset, timestamp in map(
            dict.values, kraftlog.open(file).batches(COLUMNS).to_pylist()
        ):
            yield base_offset, timestamp, data[position : position + size]


def test_rolls_and_pieces(tmp_path: Path) -> None:
    """A log that is written second by second, into a new segment now and then, and is looked at when nothing is new."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    seconds: dict[int, list[tuple[int, bytes]]] = {}
    for base_offset, timestamp, data in batches():
        seconds.setdefault(timestamp // 1000, []).append((base_offset, data))
    pieces = list(seconds.values())
    files = [folder / f"{0:020d}.log"]

    def append(number: int) -> None:
        if number % 2 == 0 and number:
            files.append(folder / f"{pieces[number][0][0]:020d}.log")
        with files[-1].open("ab") as file:
            file.write(b"".join(data for _, data in pieces[number]))

    append(0)
    steps = [step for number in range(1, len(pieces)) for step in (lambda number=number: append(number), lambda: None)]
    found = followed(folder, steps)
    assert len(files) > 4
    assert [at for some in found for at in some] == whole(folder)
    assert all(not some for some in found[2::2])


def test_truncation(tmp_path: Path) -> None:
    """A new leader lets a follower cut its log back: what was told is taken back, and what stands there now is told."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    file = folder / f"{0:020d}.log"
    parts = list(batches())
    middle = len(parts) // 2
    kept, cut_off = b"".join(data for _, _, data in parts[:middle]), b"".join(data for _, _, data in parts[middle:])
    file.write_bytes(kept + cut_off)
    offset = parts[middle][0]
    noop = bytes([1, 20, 0, 0])
    newer = kraftlog.encode(
        pa.table({"value": pa.array([noop] * 3, pa.binary())}),
        base_offset=offset,
        partition_leader_epoch=99,
        timestamp_ms=parts[-1][1],
    )
    found = followed(folder, [lambda: file.write_bytes(kept), lambda: file.write_bytes(kept + newer)])
    first = f"the log was cut back to offset {offset}: what was told of later offsets did not happen"
    assert [at.what.message for at in found[1]] == [first]
    assert found[2] == []
    file.write_bytes(kept + cut_off)
    found = followed(folder, [lambda: file.write_bytes(kept + newer)])
    assert [at.what.message for at in found[1]] == [first]
    file.write_bytes(kept)
    found = followed(folder, [lambda: file.write_bytes(kept + cut_off)])
    assert found[1] == whole(folder, offset - 1)


def test_command_until_it_is_interrupted(tmp_path: Path) -> None:
    """What is written later is shown; Ctrl-C ends it with 130."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    parts = list(batches())
    file = folder / f"{0:020d}.log"
    file.write_bytes(b"".join(data for _, _, data in parts[:4]))
    first = whole(folder)
    program = Path(sys.executable).parent / "kraftlog"
    process = subprocess.Popen(
        [str(program), "changes", str(folder), "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    shown = [process.stdout.readline() for _ in first]
    with file.open("ab") as out:
        out.write(b"".join(data for _, _, data in parts[4:]))
    log = MetadataLog.open(folder)
    rest = list(timeline(log, image_at(log, parts[4][0] - 1, []), None, []))
    shown += [process.stdout.readline() for _ in rest]
    process.send_signal(signal.SIGINT)
    left, errors = process.communicate(timeout=30)
    assert (process.returncode, left, errors) == (130, "", "\nkraftlog: interrupted\n")
    for line, at in zip(shown, [*first, *rest], strict=True):
        assert at.what.message in line
