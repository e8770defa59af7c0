"""Each segment is opened and decoded once, whatever is checked."""

from __future__ import annotations

from collections import Counter

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog._native.scanner import Scanner
from kraftlog.check import decoded_headers
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.topics import INTERNAL_TOPICS, TRANSACTION_STATE


class CountingDisk(Disk):
    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()

    def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
        self.opened[path.name if path.suffix != ".log" else str(path)] += 1
        return super().open(path, size)


@pytest.mark.parametrize("scenario", ["codecs", "transactions", "compaction", "deleted_records"])
def test_verify_opens_and_decodes_a_segment_once(scenario: str, monkeypatch: pytest.MonkeyPatch):
    log = kraftlog.open(GOLDEN / scenario / "log")
    decoded: Counter[str] = Counter()

    class CountingDecoder(decoded_headers.RecordDecoder):
        def __init__(self, buffer: ReadableFile, *args: object, **others: object) -> None:
            decoded[str(buffer.path)] += 1
            super().__init__(buffer, *args, **others)  # type: ignore[arg-type]

    scans: list[object] = []

    class CountingScanner(Scanner):  # type: ignore[misc]
        def __init__(self, *args: object) -> None:
            scans.append(args)

    monkeypatch.setattr(decoded_headers, "RecordDecoder", CountingDecoder)
    monkeypatch.setattr("kraftlog.codec.header_scan.Scanner", CountingScanner)
    with use_disk(CountingDisk()) as disk:
        assert list(log.verify()) == []
    assert isinstance(disk, CountingDisk)
    files = {str(segment.path): 1 for segment in log.found.segments}
    assert decoded == files
    # messages of internal topics are decoded after the check of their batches
    files |= {str(segment.path): 2 for segment in log.found.segments if segment.topic in INTERNAL_TOPICS}
    # what coordinators decided is in records, which the check of batches does not hand on
    files |= {str(segment.path): 3 for segment in log.found.segments if segment.topic == TRANSACTION_STATE}
    assert {name: count for name, count in disk.opened.items() if name.endswith(".log")} == files
    assert scans == []
