"""The table replicas, beside a twin in plain Python that knows each record of each replica."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from held_replicas import Held, agreed, batch, damaged_replicas, stretches, write
from kraftlog.cli import commands
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.query.session import SqlSession
from kraftlog.read.held_offsets import OffsetSet
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import Replicas
from replica_histories import Record

Row = dict[str, Any]
HEADER_BYTES = 61  # of a record batch

OF_FILES = [name for name, one in TABLES.items() if one.replicas is Replicas.EACH and name != "replicas"]


def twin(each: Sequence[Held]) -> list[Row]:
    line = max(each, key=lambda held: (held.last_epoch, held.end, -held.start))
    until = [held.end if held is line else agreed(held, line) for held in each]
    known = {
        offset
        for held, end in zip(each, until, strict=True)
        if end is not None
        for offset in held.sound
        if offset < end
    }
    rows: list[Row] = []
    for held, end in zip(each, until, strict=True):
        limit = None if end is None else min(end, held.end)
        lacking = {
            one for one in known - held.sound if limit is not None and max(held.start, held.cleaned) <= one < limit
        }
        rows.append(
            {
                "log_start_offset": held.start,
                "end_offset": held.end,
                "last_epoch": None if held.last_epoch == -1 else held.last_epoch,
                "agrees_until": limit,
                "is_chosen": held is line,
                "missing": None if limit is None else stretches(lacking),
                "damaged": len(held.damaged),
            }
        )
    return rows


COLUMNS = [*twin([Held(0, [], set(), 0)])[0]]


def plain(rows: list[Row]) -> list[Row]:
    """Return rows as the twin has them."""
    return [
        row
        | {
            "missing": None if row["missing"] is None else [tuple(one.values()) for one in row["missing"]],
            "damaged": len(row["damaged"]),
        }
        for row in rows
    ]


def rows_in_spark(paths: Sequence[Path], **options: str) -> list[Row]:
    request = parse_request({"paths": ",".join(map(str, paths)), "table": "replicas", "onError": "skip", **options})
    batches = [rows for part in pickle.loads(pickle.dumps(plan_parts(request))) for rows in read(request, part, [])]
    return pa.Table.from_batches(batches, schema=request.schema).to_pylist()


def rows_of_command(paths: Sequence[Path], folder: Path, *options: str) -> list[Row]:
    output = folder / "rows.arrows"
    arguments = ["replicas", *map(str, paths), "--format", "arrow", "--output", str(output), "--force", *options]
    result = CliRunner().invoke(commands, arguments, standalone_mode=False)
    assert not isinstance(result.exception, Exception), result.output
    return pa.ipc.open_stream(output).read_all().to_pylist()


@settings(max_examples=60)
@given(damaged_replicas(), st.integers(1, 4))
def test_random_replicas(each: list[Held], rolls: int):
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "abc"]
        for path, held in zip(paths, each, strict=True):
            write(path, held, rolls)
        log, faults = kraftlog.open(paths), list[Fault]()
        rows = log.replicas(COLUMNS, faults=faults).to_pylist()
        assert plain(rows) == twin(each)
        assert len(faults) == sum(len(held.damaged) for held in each)
        whole = log.scan("replicas", None, workers=3).to_table().to_pylist()
        assert [{name: row[name] for name in COLUMNS} for row in whole] == rows
        assert rows_in_spark(paths) == whole


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))),
)
def test_sets_of_offsets(left: list[tuple[int, int]], right: list[tuple[int, int]]):
    sets = [OffsetSet([one[0] for one in some], [one[1] for one in some]) for some in (left, right)]
    plainly = [{offset for one in some for offset in range(*one)} for some in (left, right)]
    assert sets[0].within(0, 30) == stretches(plainly[0])
    assert (sets[0] - sets[1]).within(0, 30) == stretches(plainly[0] - plainly[1])
    assert OffsetSet.union(sets).within(0, 30) == stretches(plainly[0] | plainly[1])
    assert sets[0].until(9).within(3, 30) == stretches({one for one in plainly[0] if 3 <= one < 9})


def records(*offsets: int, epoch: int = 0) -> list[Record]:
    return [Record(offset, epoch, offset) for offset in offsets]


def test_each_door_has_the_same_rows(tmp_path: Path):
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, Held(0, records(*range(9)), {3}, 0), 2)
    write(b, Held(0, [*records(*range(2, 7)), *records(7, epoch=1)], set(), 0), 3)
    rows = kraftlog.open([a, b]).replicas(faults=[]).to_pylist()
    assert [row["agrees_until"] for row in rows] == [7, 8]
    assert [row["missing"] for row in rows] == [
        [{"first_offset": 3, "end_offset": 4}],
        [{"first_offset": 0, "end_offset": 2}],
    ]
    assert [row["is_chosen"] for row in rows] == [False, True]
    position = len(batch(records(2)[0]))
    size = len(batch(records(3)[0]))
    damage = {"segment_base_offset": 2, "position": position, "size_in_bytes": size, "error": "bad_crc"}
    assert [row["damaged"] for row in rows] == [[damage], []]
    assert rows_of_command([a, b], tmp_path) == rows_in_spark([a, b]) == rows
    with SqlSession(kraftlog.open([a, b])) as session:
        assert session.query("select * exclude folder from replicas").read_all().to_pylist() == rows
        counted = session.query("select count(*) as n from replicas where is_chosen").read_all().to_pylist()
    assert counted == [{"n": 1}]


def test_without_check_crc_headers_alone_are_read(tmp_path: Path):
    a, b = tmp_path / "a", tmp_path / "b"
    write(a, Held(0, records(*range(5)), {2}, 0), 5)
    write(b, Held(0, records(0, 1, 2, 3, 4), set(), 0), 5)
    paths, sound = [a, b], [[], []]
    assert [row["damaged"] for row in kraftlog.open(paths).replicas(check_crc=False, faults=[]).to_pylist()] == sound
    assert [row["damaged"] for row in rows_in_spark(paths, checkCrc="false")] == sound
    assert [row["damaged"] for row in rows_of_command(paths, tmp_path, "--no-check-crc")] == sound
    assert kraftlog.open(paths).replicas(faults=[])["missing"].to_pylist()[0] == [{"first_offset": 2, "end_offset": 3}]


def test_damage_is_a_fault(tmp_path: Path):
    write(tmp_path / "a", Held(0, records(*range(5)), {2}, 0), 5)
    log = kraftlog.open(tmp_path / "a")
    with pytest.warns(UserWarning, match="replicas may lack rows.*crc"):
        log.replicas()
    with pytest.raises(CorruptRecordError, match="crc"):
        log.replicas(strict=True)
    with pytest.raises(CorruptRecordError, match="crc"):
        rows_in_spark([tmp_path / "a"], onError="fail")
    done = CliRunner().invoke(commands, ["replicas", str(tmp_path / "a")])
    assert done.exit_code == 1


def test_a_batch_that_a_closed_segment_cuts_off_is_damage(tmp_path: Path):
    write(tmp_path / "a", Held(0, records(*range(4)), set(), 0), 2)
    path = tmp_path / "a" / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    (row,) = kraftlog.open(tmp_path / "a").replicas(faults=[]).to_pylist()
    assert [one["error"] for one in row["damaged"]] == ["batch_cut_off"]


def test_folders_that_kafka_marked_are_listed(tmp_path: Path):
    write(tmp_path / "a", Held(0, records(*range(5)), set(), 0), 5)
    (tmp_path / "a" / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: now\n")
    (tmp_path / "a" / "replication-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    (tmp_path / "a" / "meta.properties").write_text("version=1\nnode.id=7\n")
    expected = {"live": (5, True, 4), "future": (3, False, None), "delete": (5, False, None), "stray": (9, False, None)}
    for kind, (end, *_) in expected.items():
        if kind == "live":
            continue
        write(tmp_path / kind, Held(0, records(*range(end)), set(), 0), 5)
        name = f"orders-{0 if kind != 'stray' else 1}.{'0' * 32}-{kind}"
        shutil.move(tmp_path / kind / "orders-0", tmp_path / "a" / name)
    (tmp_path / "a" / f"orders-0.{'0' * 32}-delete" / "partition.metadata").write_text("version: 0\ntopic_id: before\n")
    for paths in ([tmp_path / "a"], [tmp_path / "a", *(tmp_path / "a").glob("*-future")]):
        rows = kraftlog.open(paths).replicas().to_pylist()
        assert rows == rows_in_spark(paths)
        found = {row["kind"]: (row["end_offset"], row["is_chosen"], row["high_watermark"]) for row in rows}
        assert found == expected
        assert len(rows) == len(found)
        agree = {row["kind"]: row["agrees_until"] for row in rows}
        assert agree == {"live": 5, "future": 3, "delete": None, "stray": None}  # of another topic; of no partition
        assert {row["node_id"] for row in rows} == {7}
        assert [row["partition"] for row in rows if row["kind"] == "stray"] == [1]
    assert kraftlog.open(tmp_path / "a").segments().num_rows == 1
    assert kraftlog.open(tmp_path / "a").records().to_table().num_rows == 5


@pytest.mark.parametrize("topic", ["__consumer_offsets", "orders"])
def test_what_a_cleaner_may_have_removed_is_not_missing(tmp_path: Path, topic: str):
    """Without its checkpoint, topics that Kafka itself compacts are clean before their last segment."""
    for name, offsets in (("a", [0, 1, 2, 5, 6, 7, 9]), ("b", range(10))):
        write(tmp_path / name, Held(0, records(*offsets), set(), 0), 5)
        if topic != "orders":
            (tmp_path / name / "orders-0").rename(tmp_path / name / f"{topic}-0")
    before = [{"first_offset": 3, "end_offset": 5}] if topic == "orders" else []
    paths = [tmp_path / "a", tmp_path / "b"]
    assert kraftlog.open(paths).replicas()["missing"].to_pylist() == [
        [*before, {"first_offset": 8, "end_offset": 9}],
        [],
    ]
    (tmp_path / "a" / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 4\n")
    expected = [{"first_offset": 4, "end_offset": 5}, {"first_offset": 8, "end_offset": 9}]
    assert kraftlog.open(paths).replicas()["missing"].to_pylist() == [expected, []]


def test_a_checkpoint_that_cannot_be_read_is_a_fault(tmp_path: Path):
    write(tmp_path / "a", Held(0, records(0), set(), 0), 5)
    (tmp_path / "a" / "replication-offset-checkpoint").write_text("nonsense\n")
    faults: list[Fault] = []
    (row,) = kraftlog.open(tmp_path / "a").replicas(faults=faults).to_pylist()
    assert row["high_watermark"] is None
    assert [fault.error for fault in faults] == ["bad_checkpoint"]


def test_in_isr_is_what_the_metadata_log_says(tmp_path: Path):
    one = shutil.copytree(GOLDEN / "releases" / "3.9.1" / "killed" / "log", tmp_path / "one")
    two = tmp_path / "two"
    shutil.copytree(one / "orders-0", two / "orders-0")
    (two / "meta.properties").write_text((one / "meta.properties").read_text().replace("node.id=1", "node.id=2"))
    names = ["topic", "node_id", "in_isr", "is_chosen"]
    for log in (kraftlog.open([one, two]), kraftlog.open([one, two], topics=["orders"])):
        rows = [row for row in log.replicas(names).to_pylist() if row.pop("topic") == "orders"]
        assert {"node_id": 2, "in_isr": False, "is_chosen": False} in rows
        assert {"node_id": 1, "in_isr": True, "is_chosen": True} in rows
    assert set(kraftlog.open(two).replicas(names)["in_isr"].to_pylist()) == {None}
    columns = ",".join(names)
    for subscribed in ({}, {"subscribe": "orders"}):
        rows = rows_in_spark([one, two], columns=columns, **subscribed)
        assert {"topic": "orders", "node_id": 2, "in_isr": False, "is_chosen": False} in rows


def test_a_remote_tier_below_a_log_directory_has_its_own_row():
    logs, tier = GOLDEN / "remote_tier" / "logs", GOLDEN / "remote_tier" / "tier"
    segments = kraftlog.open(logs, remote_tier=tier, topics=["orders"]).segments(["base_offset", "next_offset"])
    log = kraftlog.open(logs, remote_tier=tier, topics=["orders"])
    stored, live = log.replicas().to_pylist()
    assert (stored["kind"], live["kind"]) == ("remote", "live")
    assert [one["is_chosen"] for one in (stored, live)] == [True, True]
    assert stored["topic_id"] == live["topic_id"] is not None
    assert live["directory"] == str(logs)
    assert stored["directory"].startswith(str(tier))
    assert not Path(stored["directory"]).name.startswith("orders-")
    ends = segments["next_offset"].to_pylist()
    assert (stored["log_start_offset"], live["end_offset"]) == (segments["base_offset"][0].as_py(), ends[-1])
    assert stored["end_offset"] == live["log_start_offset"] in ends
    assert [one["missing"] for one in (stored, live)] == [[], []]
    assert [one["agrees_until"] for one in (stored, live)] == [one["end_offset"] for one in (stored, live)]
    assert [one["high_watermark"] for one in (stored, live)] == [None, live["end_offset"]]
    request = {"path": str(logs), "remoteTier": str(tier), "subscribe": "orders", "table": "replicas"}
    plan = plan_parts(parse_request(request))
    assert [row for part in plan for rows in read(parse_request(request), part, []) for row in rows.to_pylist()] == [
        stored,
        live,
    ]
    (alone,) = kraftlog.open(remote_tier=tier, topics=["orders"]).replicas().to_pylist()
    assert (alone["kind"], alone["is_chosen"], alone["topic_id"]) == ("remote", True, stored["topic_id"])


COUNTED: dict[str, Callable[[kraftlog.Log], Any]] = {
    "ends": lambda log: log.replicas(["directory", "end_offset", "agrees_until", "is_chosen"]),
    "missing of one": lambda log: log.replicas(["missing"]),
}


@pytest.mark.parametrize("which", COUNTED)
def test_batches_are_read_only_for_what_needs_them(tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "a", Held(0, records(*range(8)), set(), 0), 2)
    monkeypatch.setattr("kraftlog.tables.replica_table.held_offsets", None)
    assert COUNTED[which](kraftlog.open(tmp_path / "a")).num_rows == 1
    with pytest.raises(TypeError):
        kraftlog.open(tmp_path / "a").replicas(["damaged"])


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """Return two log directories: both are damaged, one has a file that is not read, the other an index file."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        write(path, Held(0, records(*range(6)), {3}, 0), 3)
    (paths[0] / "orders-0" / "notes.txt").write_text("mine")
    (paths[1] / "orders-0" / f"{0:020d}.index").write_bytes(bytes([0, 0, 0, 1, 0, 0, 0, 80]))
    (paths[1] / "orders-0" / f"{9:020d}.log.deleted").write_bytes(b"")
    return paths


@pytest.mark.parametrize("table", OF_FILES)
def test_the_column_replica_says_which_directory_a_row_is_of(pair: list[Path], tmp_path: Path, table: str):
    names = [*(name for name in TABLES[table].schema.shown if name != "crc_ok"), "replica"]
    alone = [kraftlog.open(path).scan(table, names).to_table().to_pylist() for path in pair]
    for path, rows in zip(pair, alone, strict=True):
        assert {row["replica"] for row in rows} <= {str(path)}
    both = kraftlog.open(pair).scan(table, names)
    rows = sorted(map(str, both.to_table().to_pylist()))
    assert rows == sorted(str(row) for rows in alone for row in rows) != []
    assert both.notes == []
    options = {"paths": ",".join(map(str, pair)), "table": table, "onError": "skip", "columns": ",".join(names)}
    request = parse_request(options)
    found = [row for part in plan_parts(request) for some in read(request, part, []) for row in some.to_pylist()]
    assert sorted(map(str, found)) == rows
    command = [TABLES[table].command, *map(str, pair), "--columns", ",".join(names), "--format", "arrow"]
    CliRunner().invoke(commands, [*command, "--output", str(tmp_path / "rows.arrows")])
    shown = pa.ipc.open_stream(tmp_path / "rows.arrows").read_all().to_pylist()
    if table == "errors":  # the command, verify, also compares index files
        shown = [row for row in shown if row["error"] != "index_mismatch"]
    assert sorted(map(str, shown)) == rows


@pytest.mark.parametrize("table", OF_FILES)
def test_without_the_column_a_note_tells_of_several_replicas(pair: list[Path], table: str):
    for paths, notes in ((pair, 1), (pair[:1], 0)):
        stream = kraftlog.open(paths).scan(table)
        stream.to_table()
        assert len([note for note in stream.notes if "the column replica says which" in note]) == notes
        assert "replica" not in stream.schema.names


def test_replicas_of_verify(pair: list[Path], tmp_path: Path):
    assert {fault.replica for fault in kraftlog.open(pair).verify()} == set(map(str, pair))


def test_a_file_in_no_partitions_folder_is_of_no_replica(tmp_path: Path):
    (tmp_path / "copy").mkdir()
    path = tmp_path / "copy" / f"{0:020d}.log"
    path.write_bytes(batch(records(0)[0]))
    for table in ("segments", "batches"):
        assert kraftlog.open(path).scan(table, ["replica"]).to_table().to_pylist() == [{"replica": None}]
    assert kraftlog.open(path).replicas().num_rows == 0


def test_the_replica_of_stored_segments_is_the_tier():
    logs, tier = GOLDEN / "remote_tier" / "logs", GOLDEN / "remote_tier" / "tier"
    log = kraftlog.open(logs, remote_tier=tier, topics=["orders"])
    directories = log.replicas(["directory"])["directory"].to_pylist()
    for table in ("segments", "batches", "index_entries"):
        assert set(log.scan(table, ["replica"]).to_table()["replica"].to_pylist()) == set(directories)


def test_what_only_a_marked_folder_has_is_not_missing(tmp_path: Path):
    """It is none of the partition's replicas; of itself it is known what it lacks."""
    write(tmp_path / "a", Held(0, records(0, 1, 3, 4), set(), 0), 5)
    write(tmp_path / "b", Held(0, records(0, 2, 4), set(), 0), 5)
    shutil.move(tmp_path / "b" / "orders-0", tmp_path / "a" / f"orders-0.{'0' * 32}-future")
    (tmp_path / "a" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 2\n")  # of the live log
    rows = {row["kind"]: row["missing"] for row in kraftlog.open(tmp_path / "a").replicas().to_pylist()}
    lacking = [{"first_offset": 1, "end_offset": 2}, {"first_offset": 3, "end_offset": 4}]
    assert rows == {"live": [], "future": lacking}


def test_damage_is_shown_where_it_is(tmp_path: Path):
    """Of a log that a remote tier holds the first segments of, in the row of the directory that the segment is in."""
    folder = Path(shutil.copytree(GOLDEN / "remote_tier", tmp_path / "copy"))
    log = kraftlog.open(folder / "logs", remote_tier=folder / "tier", topics=["orders"])
    path = log.found.segments[-1].local_path
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES] ^= 1
    path.write_bytes(data)
    stored, live = log.replicas(["kind", "damaged"], faults=[]).to_pylist()
    assert (stored["damaged"], len(live["damaged"])) == ([], 1)
