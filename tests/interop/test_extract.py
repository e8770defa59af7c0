"""A real broker opens what was extracted from its own log, and serves the same records to a consumer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from jvm import Line
from kafka_broker import Broker
from records import by_partition, made, mixed

import kraftlog

COUNT = 240
START, END = 31, 203
TOPICS = ["source", "whole", "part", "resolved"]
SMALL = {"internal.segment.bytes": str(100 << 10)}

Partitions = dict[tuple[str, int], list[Line]]


class Served(NamedTuple):
    """What consumers got, by isolation level, and errors that the broker logged."""

    uncommitted: Partitions
    committed: Partitions
    appended: Partitions
    errors: list[str]


def put(extracted: Path, broker: Broker, topic: str) -> None:
    """Put extracted files in the place of a topic's; the broker's own file with the topic id stays."""
    for folder in sorted(extracted.glob(f"{topic}-*")):
        place = broker.log_dir / folder.name
        for old in place.iterdir():
            if old.name != "partition.metadata" or (folder / old.name).exists():
                old.unlink()
        for path in folder.iterdir():
            shutil.copy(path, place / path.name)


@pytest.fixture(scope="module", params=["its files are trusted", "its files are made anew"])
def served(request: pytest.FixtureRequest, java: object, tmp_path_factory: pytest.TempPathFactory) -> Served:
    broker = Broker(java, tmp_path_factory.mktemp("kafka"))  # type: ignore[arg-type]
    home = tmp_path_factory.mktemp("extracted")
    with broker:
        broker.create({"name": topic, "partitions": 2, "configs": SMALL} for topic in TOPICS)
        broker.produce(line for partition in range(2) for line in mixed("source", partition, COUNT))
    log, names = broker.log_dir, ["source"]
    bounds = {"start_offset": START, "end_offset": END}
    done = [
        kraftlog.extract(log, home / "same", topics=names),
        kraftlog.extract(log, home / "whole", topics=names, rename={"source": "whole"}),
        kraftlog.extract(log, home / "part", topics=names, rename={"source": "part"}, **bounds),
        kraftlog.extract(
            log, home / "resolved", topics=names, rename={"source": "resolved"}, committed=True, compression="zstd"
        ),
    ]
    assert [(one.faults, one.notes) for one in done] == [([], [])] * 4
    for name in ("same", *TOPICS[1:]):
        put(home / name, broker, "source" if name == "same" else name)
    if request.param == "its files are made anew":
        broker.forget_the_clean_shutdown()
    with broker:
        uncommitted, committed = (
            by_partition(broker.consume_at(level, TOPICS)[0]) for level in ("read_uncommitted", "read_committed")
        )
        last = made("source", 0, COUNT)[0]
        broker.produce([{"producer": {}}, *({**last, "topic": topic, "partition": 1} for topic in TOPICS)])
        appended = by_partition(broker.consume(TOPICS))
        return Served(uncommitted, committed, appended, broker.errors())


def plain(lines: list[Line], start: int = 0, end: int = 1 << 62) -> list[Line]:
    """Return records without the name of their topic, within bounds."""
    kept = [line for line in lines if start <= line["offset"] < end]
    return [{name: line[name] for name in line if name != "topic"} for line in kept]


@pytest.mark.parametrize("partition", range(2))
def test_a_consumer_gets_the_same_records(served: Served, partition: int):
    everything, visible = served.uncommitted["source", partition], served.committed["source", partition]
    assert len(everything) == COUNT
    assert len(visible) == COUNT * 2 // 3
    assert plain(served.uncommitted["whole", partition]) == plain(everything)
    assert plain(served.committed["whole", partition]) == plain(visible)
    assert plain(served.uncommitted["part", partition]) == plain(everything, START, END)
    assert plain(served.committed["part", partition]) == plain(visible, START, END)
    assert plain(served.uncommitted["resolved", partition]) == plain(visible)
    assert plain(served.committed["resolved", partition]) == plain(visible)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_broker_goes_on_at_the_end(served: Served, topic: str):
    before, after = served.uncommitted[topic, 1], served.appended[topic, 1]
    assert after[:-1] == before
    assert after[-1]["offset"] > before[-1]["offset"]


def test_the_broker_does_not_complain(served: Served):
    assert served.errors == []
