"""Bounds of high watermarks, beside a twin in plain Python: it tries all that nodes may have which are not given."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from held_replicas import ORDERS, Held, agreed, batch, write
from kraftlog.cli import commands
from kraftlog.codec.control_records import control_batch, leader_change, snapshot_footer, snapshot_header
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import CorruptRecordError
from kraftlog.query.session import SqlSession
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from replica_histories import Record, replicas

COLUMNS = ["high_watermark_at_least", "high_watermark_at_most"]
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAQ"
CONTROLLER = 100
METADATA = "__cluster_metadata"
Bounds = tuple[int | None, int | None]


class Cluster(NamedTuple):
    """What is known of a partition: logs, and what checkpoints say, by node id; and who is in sync."""

    logs: Mapping[int, Held]
    said: Mapping[int, int | None]
    isr: frozenset[int] | None
    min_insync_replicas: int


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    logs = {node: Held(log.start, log.records, set(), 0) for node, log in enumerate(draw(replicas()))}
    given_nodes = draw(st.sets(st.sampled_from([0, 1, 2]), min_size=1))
    said = {node: draw(st.none() | st.integers(0, logs[node].end + 2)) for node in sorted(given_nodes)}
    isr = draw(st.none() | st.frozensets(st.integers(0, 3), min_size=1))
    return Cluster({node: logs[node] for node in said}, said, isr, draw(st.integers(1, 3)))


def line_of(logs: Mapping[int, Held]) -> Held:
    return max(logs.values(), key=lambda held: (held.last_epoch, held.end, -held.start))


def has(held: Held, line: Held) -> tuple[int, int]:
    """Return how much of the line a log may have, at least and at most."""
    until = held.end if held is line else agreed(held, line)
    end = min(held.end, line.end)
    return (line.start if until is None else min(until, end)), (end if until is None else min(until, end))


def committed(worlds: Sequence[Sequence[int]], needed: int, line: Held) -> tuple[int, int]:
    """Return the least and the most that so many nodes have, over all that may be."""
    each = [
        max(
            offset
            for offset in range(line.start, line.end + 1)
            if offset == line.start or sum(end >= offset for end in world) >= needed
        )
        for world in worlds
    ]
    return min(each), max(each)


def worlds(nodes: frozenset[int], logs: Mapping[int, Held], line: Held) -> list[tuple[int, ...]]:
    unknown = line.start, line.end
    return list(itertools.product(*(has(logs[node], line) if node in logs else unknown for node in nodes)))


def twin(cluster: Cluster) -> tuple[int, int]:
    line = line_of(cluster.logs)
    at_least, at_most = line.start, line.end
    if cluster.isr is not None:
        found = committed(worlds(cluster.isr, cluster.logs, line), len(cluster.isr), line)
        at_most = found[1]
        at_least = found[0] if len(cluster.isr) >= cluster.min_insync_replicas else line.start
    for node, said in cluster.said.items():
        held = cluster.logs[node]
        until = line.end if held is line else agreed(held, line)
        if said is not None and until is not None:
            at_least = max(at_least, min(said, until, line.end))
    return max(line.start, min(at_least, at_most)), max(line.start, at_most)


def metadata_batch(*records: bytes, base_offset: int = 0, epoch: int = 0) -> bytes:
    options: dict[str, Any] = {"base_offset": base_offset, "partition_leader_epoch": epoch}
    return bytes(kraftlog.encode(pa.table({"value": list(records)}), timestamp_ms=1, **options))


def message(of: str, **fields: Any) -> bytes:
    types = {"replicas": pa.list_(pa.int32()), "isr": pa.list_(pa.int32()), "resource_type": pa.int8()}
    arrays = {
        key: pa.array([value], types.get(key, pa.string() if isinstance(value, str) else pa.int32()))
        for key, value in fields.items()
    }
    found: bytes = kraftlog.encode_messages(of, pa.table(arrays))[0].as_py()
    return found


def write_cluster(root: Path, cluster: Cluster) -> list[Path]:
    paths = []
    for node, held in cluster.logs.items():
        paths.append(root / str(node))
        write(paths[-1], held, 3)
        (paths[-1] / "meta.properties").write_text(f"node.id={node}\n")
        if (said := cluster.said[node]) is not None:
            (paths[-1] / "replication-offset-checkpoint").write_text(f"0\n1\n{ORDERS} 0 {said}\n")
    if cluster.isr is not None:
        isr = sorted(cluster.isr)
        of_topic = {"resource_type": 2, "resource_name": ORDERS}
        records = [
            message("TopicRecord", name=ORDERS, topic_id=TOPIC_ID),
            message("ConfigRecord", name="min.insync.replicas", value=str(cluster.min_insync_replicas), **of_topic),
            message("PartitionRecord", partition_id=0, topic_id=TOPIC_ID, replicas=isr, isr=isr, leader=-1),
        ]
        paths.append(write_metadata(root / "metadata", CONTROLLER, metadata_batch(*records)))
    return paths


def write_metadata(directory: Path, node: int, *batches: bytes) -> Path:
    folder = directory / f"{METADATA}-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    (directory / "meta.properties").write_text(f"node.id={node}\n")
    return directory


def bounds(paths: Sequence[Path], topic: str = ORDERS, **options: Any) -> Bounds:
    (row,) = kraftlog.open(paths, topics=[topic]).partition_offsets(columns=COLUMNS, **options).to_table().to_pylist()
    return row[COLUMNS[0]], row[COLUMNS[1]]


@settings(max_examples=60)
@given(clusters())
def test_random_clusters(cluster: Cluster):
    with TemporaryDirectory() as folder:
        assert bounds(write_cluster(Path(folder), cluster)) == twin(cluster)


def log(end: int, epoch: int = 0, start: int = 0) -> Held:
    return Held(start, [Record(offset, epoch, offset) for offset in range(start, end)], set(), 0)


def test_it_is_exact_where_all_in_sync_are_given(tmp_path: Path):
    cluster = Cluster({0: log(9), 1: log(7), 2: log(4)}, {0: 3, 1: 2, 2: None}, frozenset({0, 1}), 1)
    paths = write_cluster(tmp_path, cluster)
    assert bounds(paths) == (7, 7)
    assert bounds(paths[:2]) == (3, 9)  # without the metadata log nobody is known to be in sync
    assert bounds([paths[0], *paths[2:]]) == (3, 9)  # node 1 may have all, or what the checkpoint says
    assert bounds([*paths[1:]]) == (2, 7)


@pytest.mark.parametrize(("needed", "expected"), [(1, (7, 7)), (2, (7, 7)), (3, (3, 7))])
def test_fewer_in_sync_than_must_be_prove_nothing(tmp_path: Path, needed: int, expected: Bounds):
    cluster = Cluster({0: log(9), 1: log(7)}, {0: 3, 1: None}, frozenset({0, 1}), needed)
    assert bounds(write_cluster(tmp_path, cluster)) == expected


@pytest.mark.parametrize("said", [7, 30])
def test_a_checkpoint_counts_for_what_the_line_has(tmp_path: Path, said: int):
    """Of a replica that parts from the line, and no further than those in sync go."""
    parted = Held(0, [Record(offset, 0 if offset < 4 else 1, offset) for offset in range(8)], set(), 0)
    line = Held(0, [Record(offset, 0 if offset < 5 else 2, offset) for offset in range(9)], set(), 0)
    cluster = Cluster({0: parted, 1: line}, {0: said, 1: None}, None, 1)
    assert bounds(write_cluster(tmp_path / "a", cluster)) == (4, 9)
    in_sync = Cluster({0: log(3), 1: log(9)}, {0: None, 1: said}, frozenset({0, 1}), 3)
    assert bounds(write_cluster(tmp_path / "b", in_sync)) == (3, 3)


def test_two_copies_of_one_node_are_bounds(tmp_path: Path):
    paths = write_cluster(tmp_path, Cluster({0: log(9), 1: log(7)}, {0: None, 1: None}, frozenset({0, 1}), 1))
    (older,) = write_cluster(tmp_path / "older", Cluster({1: log(5)}, {1: None}, None, 1))
    assert bounds([*paths, older]) == (5, 7)


def test_of_a_damaged_tail_nothing_is_held(tmp_path: Path):
    paths = write_cluster(tmp_path, Cluster({0: log(9), 1: log(9)}, {0: None, 1: None}, frozenset({0, 1}), 1))
    last = max((paths[1] / f"{ORDERS}-0").glob("*.log"))
    data = bytearray(last.read_bytes())
    data[-1] ^= 1
    last.write_bytes(data)
    assert bounds(paths) == (8, 8)


def test_a_checkpoint_that_cannot_be_read(tmp_path: Path):
    (path,) = write_cluster(tmp_path, Cluster({0: log(9)}, {0: 5}, None, 1))
    (path / "replication-offset-checkpoint").write_text("nonsense\n")
    assert bounds([path], strict=False) == (0, 9)
    with pytest.raises(CorruptRecordError, match="replication-offset-checkpoint"):
        bounds([path])
    assert kraftlog.open(path).partition_offsets().to_table().num_rows == 1  # nobody asked for it


def quorum(root: Path, ends: Mapping[int, Sequence[tuple[int, int]]], *first: bytes) -> list[Path]:
    """Write a metadata log for each node, of epochs and where each ends."""
    paths = []
    for node, epochs in ends.items():
        offset, batches = len(first), list(first)
        for epoch, end in epochs:
            for at in range(offset, end):
                batches.append(batch(Record(at, epoch, at)))
            offset = end
        paths.append(write_metadata(root / str(node), node, *batches))
    return paths


def elected(*voters: int) -> bytes:
    options = {"base_offset": 0, "partition_leader_epoch": 1, "timestamp_ms": 1}
    return bytes(control_batch("LEADER_CHANGE", leader_change(voters[0], voters, voters), **options))


def voters_record(base_offset: int, *voters: int) -> bytes:
    """VotersRecord of version 0: each voter has an id, a directory, no endpoints, and two versions."""
    each = b"".join(struct.pack(">i", one) + bytes(16) + b"\1" + struct.pack(">hh", 0, 1) + b"\0\0" for one in voters)
    value = struct.pack(">h", 0) + bytes([len(voters) + 1]) + each + b"\0"
    return bytes(
        control_batch("KRAFT_VOTERS", value, base_offset=base_offset, partition_leader_epoch=1, timestamp_ms=1)
    )


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({1: [(1, 9)], 2: [(1, 7)], 3: [(1, 5)]}, (7, 7)),
        ({1: [(1, 9)], 2: [(1, 7)]}, (7, 9)),  # node 3 may have all
        ({1: [(1, 9)]}, (0, 9)),
        ({1: [(1, 9)], 2: [(1, 9)]}, (9, 9)),
        ({1: [(1, 5)], 2: [(1, 5)], 3: [(1, 4), (2, 6)]}, (4, 4)),  # what the line does not have is not committed
        # a majority has offsets up to 6, of an epoch before that of the last leader: figure 8 of the Raft paper
        ({1: [(1, 6), (4, 8)], 2: [(1, 6)], 3: [(1, 5)]}, (5, 6)),
        ({1: [(1, 6), (4, 8)], 2: [(1, 6), (4, 7)], 3: [(1, 5)]}, (7, 7)),
        ({1: [(1, 9)], 2: [(1, 7)], 3: [(1, 5)], 8: [(1, 9)], 9: [(1, 9)]}, (7, 7)),  # observers
    ],
)
def test_a_metadata_log(tmp_path: Path, ends: dict[int, list[tuple[int, int]]], expected: Bounds):
    assert bounds(quorum(tmp_path, ends, elected(1, 2, 3)), METADATA) == expected


ENDS = {1: [(1, 9)], 2: [(1, 7)], 3: [(1, 5)]}


def test_the_last_voters_count(tmp_path: Path):
    assert bounds(quorum(tmp_path / "a", ENDS, elected(1, 2, 3), voters_record(1, 1, 3)), METADATA) == (5, 5)
    assert bounds(quorum(tmp_path / "b", ENDS, elected(1, 3), voters_record(1, 1, 2)), METADATA) == (7, 7)


def test_voters_of_a_snapshot(tmp_path: Path):
    paths = quorum(tmp_path, ENDS)
    assert bounds(paths, METADATA) == (0, 9)
    of_snapshot = {"base_offset": 0, "partition_leader_epoch": 1, "timestamp_ms": 1}
    batches = [
        control_batch("SNAPSHOT_HEADER", snapshot_header(1), **of_snapshot),
        voters_record(1, 1, 3),
        control_batch("SNAPSHOT_FOOTER", snapshot_footer(), **of_snapshot | {"base_offset": 2}),
    ]
    for path in paths:
        (path / f"{METADATA}-0" / f"{4:020d}-{1:010d}.checkpoint").write_bytes(b"".join(map(bytes, batches)))
    assert bounds(paths, METADATA) == (5, 5)


def test_voters_of_quorum_state(tmp_path: Path):
    paths = quorum(tmp_path, ENDS)
    files = [path / f"{METADATA}-0" / "quorum-state" for path in paths]
    for file in files:
        file.write_text(json.dumps({"currentVoters": [{"voterId": 1}, {"voterId": 2}], "data_version": 0}))
    assert bounds(paths, METADATA) == (7, 7)
    for file in files:
        file.write_text(json.dumps({"data_version": 1}))
    assert bounds(paths, METADATA) == (0, 9)
    for file in files:
        file.write_text("[]")
    assert bounds(paths, METADATA, strict=False) == (0, 9)
    with pytest.raises(CorruptRecordError, match="quorum-state"):
        bounds(paths, METADATA)


def offsets(paths: Sequence[Path], read: str = "records", **options: Any) -> tuple[list[int], list[str]]:
    opened = kraftlog.open(paths, topics=[METADATA if read == "messages" else ORDERS])
    stream = getattr(opened, read)(["offset"], committed_only=True, **options)
    return stream.to_table()["offset"].to_pylist(), stream.notes


@settings(max_examples=20)
@given(clusters())
def test_only_what_is_committed_is_read(cluster: Cluster):
    line, (at_least, _) = line_of(cluster.logs), twin(cluster)
    with TemporaryDirectory() as folder:
        paths = write_cluster(Path(folder), cluster)
        found, notes = offsets(paths, heal=False)
        assert found == [one.offset for one in line.records if one.offset < at_least]
        assert offsets(paths, heal=False, start_offset=1, end_offset=3)[0] == [one for one in found if 1 <= one < 3]
        note = f"{ORDERS}-0: read up to offset {at_least} of {line.end}; "
        assert sum(one.startswith(note) for one in notes) == (at_least < line.end)


def test_committed_messages_and_a_partition_that_is_read_to_its_end(tmp_path: Path):
    paths = quorum(tmp_path, ENDS, elected(1, 2, 3))
    found, notes = offsets(paths, "messages", include_control=True)
    assert found == list(range(7))
    assert f"{METADATA}-0: read up to offset 7 of 9; what follows may not be committed" in notes[-1]
    assert notes[-1].endswith("(a majority of the voters has it: 1, 2, 3)")
    assert offsets(paths, "messages", include_control=True, end_offset=3)[0] == [0, 1, 2]
    assert offsets(paths[:2], "messages", include_control=True)[0] == found  # the third one may have all
    write(paths[0], log(4), 3)
    (paths[0] / "replication-offset-checkpoint").write_text(f"0\n1\n{ORDERS} 0 4\n")
    assert offsets(paths[:1]) == ([0, 1, 2, 3], [])
    with pytest.raises(ValueError, match="committed_only is of tables whose rows are records, not of batches"):
        kraftlog.open(paths).scan("batches", options=ReadOptions(committed_only=True))


def test_every_door_ends_there(tmp_path: Path):
    """Python, search, SQL and Spark; what is counted or followed refuses the option by its name."""
    paths = write_cluster(tmp_path, Cluster({0: log(9), 1: log(7)}, {0: None, 1: None}, frozenset({0, 1}), 1))
    opened, committed = kraftlog.open(paths), list(range(7))
    note = f"{ORDERS}-0: read up to offset 7 of 9; what follows may not be committed"
    searched = opened.grep(["offset"], value="no such text", invert=True, committed_only=True)
    assert searched.to_table()["offset"].to_pylist() == committed
    for is_committed, expected in (True, committed), (False, list(range(9))):
        with SqlSession(opened, committed_only=is_committed) as session:
            for table in (ORDERS, f"records where topic = '{ORDERS}'"):
                found = session.query(f'select "offset" from {table} order by 1').read_all()
                assert found["offset"].to_pylist() == expected
                assert any(one.startswith(note) for one in session.notes) == is_committed
    options = {"paths": json.dumps([*map(str, paths)]), "subscribe": ORDERS, "columns": "offset"}
    for more, expected in ({"committedOnly": "true", "endingOffsets": "9"}, committed), ({}, list(range(9))):
        request = parse_request({**options, **more})
        batches = [one for part in plan_parts(request) for one in read(request, part, [])]
        assert pa.Table.from_batches(batches)["offset"].to_pylist() == expected
    with pytest.raises(ValueError, match="option committedOnly is not of streams; highWatermark"):
        parse_request({**options, "committedOnly": "true"}, is_streaming=True)
    with pytest.raises(ValueError, match="committed_only has no meaning for a log that is followed"):
        kraftlog.follow(paths, committed_only=True)
    with pytest.raises(TypeError, match="counts of records have no option committed_only"):
        opened.key_stats([], committed_only=True)


def test_the_commands(tmp_path: Path):
    paths = write_cluster(tmp_path, Cluster({0: log(9), 1: log(7)}, {0: None, 1: None}, frozenset({0, 1}), 1))
    arguments = ["records", *map(str, paths), "--topic", ORDERS, "--columns", "offset", "--format", "csv"]
    result = CliRunner().invoke(commands, [*arguments, "--committed-only"])
    assert result.stdout.split() == ["offset", *"0123456"]
    assert "read up to offset 7 of 9" in result.stderr
    assert CliRunner().invoke(commands, [*arguments, "--committed-only", "-o", "-3"]).stdout.split() == ["offset", "6"]
    assert CliRunner().invoke(commands, [*arguments, "--committed-only", "--last", "1"]).exit_code == 2
    searching = ["grep", *arguments[1:], "--value", "no such text", "--invert", "--count", "--committed-only"]
    counted = CliRunner().invoke(commands, [*searching, "--columns", "records"])
    assert counted.stdout.split() == ["records", "7"]
    query = f'select count(*) as n from "{METADATA}" where "offset" > 7'
    assert CliRunner().invoke(commands, ["sql", str(paths[-1]), query, "--committed-only"]).exit_code == 0
