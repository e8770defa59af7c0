"""``kraftlog dump`` prints the text of kafka-dump-log, of files that any release wrote."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from golden_releases import LOGS, by_file, dumps, folder_of
from kraftlog.cli.dump.java_text import JAVA_REPLACEMENT


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("release", "state"), LOGS)
def test_dump_is_that_of_kafka(kraftlog_command: Callable[..., object], release: str, state: str):
    """Logs, index files and snapshots, preallocated ones too; values that are no UTF-8."""
    expected = dumps(release, state)
    assert len(expected) > 20
    log = folder_of(release, state) / "log"
    done = kraftlog_command("dump", "--print-data-log", *expected, cwd=log)
    assert done.returncode == 0
    found = by_file(done.stdout)
    assert list(found) == list(expected)
    for name, lines in expected.items():
        assert found[name] == lines, name


def test_jumps_are_on_stderr(kraftlog_command: Callable[..., object]):
    """Kafka prints them in no fixed order of files, and takes -1 for the offset before the first one."""
    log = folder_of("0.10.2.2", "clean") / "log"
    text = (folder_of("0.10.2.2", "clean") / "answers" / "dump.txt.gz").read_bytes()
    _, _, told = gzip.decompress(text).decode().partition("Non-consecutive")
    files = [name for name in dumps("0.10.2.2", "clean") if name.endswith(".log")]
    done = kraftlog_command("dump", "--deep-iteration", *files, cwd=log)
    printed = done.stderr.replace(f"{log.resolve()}/", "")
    assert sorted(printed.splitlines()) == sorted(f"Non-consecutive{told}".strip("\n").splitlines())


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"\xed\xa0\x80", 1),  # a surrogate
        (b"\xed\xa0", 1),
        (b"\xed\xbf\xbfx\xed", 2),
        (b"\xed\xa0A", 1),
        (b"\xe0\x80\x80", 3),
        (b"\xf0\x90\x41", 1),
        (b"\xf8\x88\x80\x80\x80", 5),
        (b"\xc0\x80", 2),
    ],
)
def test_malformed_utf_8(data: bytes, count: int):
    """As many replacements as ``new String(bytes, UTF_8)`` makes."""
    assert data.decode("utf-8", JAVA_REPLACEMENT).count("\ufffd") == count
