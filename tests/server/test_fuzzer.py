"""The fuzzer of requests finds what is planted: a fuzzer that can find nothing would never fail."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_requests
import pytest
from fuzz_requests import Fuzzer, HandlerFuzzer, ParserFuzzer
from mutated_requests import one_of_each_version

from kraftlog.log_store.partition import Partition
from kraftlog.messages import one_message
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.cluster_requests import ClusterRequests
from kraftlog.server.produce_requests import ProduceRequests

FRAMES = 600
LIMIT_S = 60
SIZE = one_message._size

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: Patch):
    monkeypatch.setattr(fuzz_requests, "FRAMES_OF_A_ROUND", FRAMES)
    monkeypatch.setattr("asyncio.to_thread", None)  # the fuzzer replaces it, and this restores it
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda *_, **__: None)  # pytest has a watch of its own


def defects(fuzzer: Fuzzer, rounds: int) -> str:
    """Run, and return the texts of the defects."""
    fuzzer.run(time.monotonic() + LIMIT_S, rounds * FRAMES)
    assert fuzzer.counts["frames"] == rounds * FRAMES
    return "\n".join(text for _, text in fuzzer.defects.values())


def corpus() -> list[bytes]:
    return list(one_of_each_version())


def test_a_sound_parser_has_no_defects():
    fuzzer = ParserFuzzer(1, corpus())
    first = len(fuzzer.corpus)
    assert defects(fuzzer, 3) == ""
    assert fuzzer.counts["parsed"] > FRAMES // 2 < fuzzer.counts["refused"]
    assert len(fuzzer.corpus) > first + 50


def test_sound_handlers_have_no_defects(tmp_path: Path):
    fuzzer = HandlerFuzzer(1, corpus(), tmp_path)
    assert defects(fuzzer, 4) == ""
    assert fuzzer.counts["answered"] > FRAMES < fuzzer.counts["refused"]


@pytest.mark.parametrize(
    ("name", "replaced", "says"),
    [
        ("_check_nullable", lambda *_: None, "cannot be null in this version"),
        ("_end", lambda _, at, size: at + size, "but the twin has None"),
        ("_uvarint", lambda data, at: (data[at], at + 1), "but the twin has"),
        ("_size", lambda count, *others: SIZE(min(count, 3), *others), "becomes"),
    ],
)
def test_a_parser_or_writer_that_is_wrong(name: str, replaced: Callable[..., Any], says: str, monkeypatch: Patch):
    fuzzer = ParserFuzzer(1, corpus())
    monkeypatch.setattr(one_message, name, replaced)
    found = defects(fuzzer, 6)
    assert says in found


def test_a_parser_that_fails(monkeypatch: Patch):
    monkeypatch.setattr("kraftlog.protocol.request._after_tags", lambda *_: 1 // 0)
    assert "ZeroDivisionError" in defects(ParserFuzzer(1, corpus()), 1)


GROWING = """
import sys
from pathlib import Path

import fuzz_requests
from kraftlog.protocol.request import Request
from mutated_requests import one_of_each_version

kept, parse = [], Request.parse

def keeping(frame, client_host):
    kept.append(b"x" * (1 << 16))
    return parse(frame, client_host)

Request.parse = keeping
fuzz_requests.FRAMES_OF_A_ROUND = 600
fuzz_requests.MOST_GROWTH = 50 << 20
level, folder = getattr(fuzz_requests, sys.argv[1]), [Path(sys.argv[2])][: sys.argv[1] == "HandlerFuzzer"]
level(1, list(one_of_each_version()), *folder).run(1e18, 3600)
"""


@pytest.mark.parametrize("level", [ParserFuzzer, HandlerFuzzer])
def test_memory_that_grows(level: type[Fuzzer], tmp_path: Path):
    """In a process of its own: one that has run other tests has memory to spare, and does not grow."""
    ended = in_a_process(GROWING, level.__name__, str(tmp_path))
    assert ended.returncode == 0
    assert b"the memory has grown from" in ended.stdout


def test_a_handler_that_raises(monkeypatch: Patch, tmp_path: Path):
    monkeypatch.delattr(ClusterRequests, "_topics")
    assert "has no attribute '_topics'" in defects(HandlerFuzzer(1, corpus(), tmp_path), 1)


def test_an_unknown_server_error(monkeypatch: Patch, tmp_path: Path):
    def unknown(*_: object) -> dict[str, Any]:
        return {"index": 0, "error_code": ErrorCode.UNKNOWN_SERVER_ERROR}

    monkeypatch.setattr(ProduceRequests, "_response", unknown)
    assert "Produce: UNKNOWN_SERVER_ERROR" in defects(HandlerFuzzer(1, corpus(), tmp_path), 1)


def test_a_damaged_log(monkeypatch: Patch, tmp_path: Path):
    append = Partition._append

    def append_damaged(self: Partition, data: Any) -> None:
        damaged = bytearray(data)
        damaged[-1] ^= 1
        append(self, damaged)

    monkeypatch.setattr(Partition, "_append", append_damaged)
    assert "a damaged log" in defects(HandlerFuzzer(1, corpus(), tmp_path), 1)


HANGING = """
import fuzz_requests
from kraftlog.protocol.request import Request
from mutated_requests import one_of_each_version

def hang(frame, client_host):
    while True:
        pass

fuzz_requests.LIMIT_S = 1
Request.parse = hang
fuzz_requests.ParserFuzzer(1, list(one_of_each_version())).run(1e18, 1000)
"""


def test_a_frame_that_takes_for_ever():
    """It ends the process, with a traceback that tells where."""
    ended = in_a_process(HANGING)
    assert ended.returncode == 1
    assert b"Timeout (0:00:01)!" in ended.stderr
    assert b"in hang" in ended.stderr


def in_a_process(program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        timeout=2 * LIMIT_S,
    )
