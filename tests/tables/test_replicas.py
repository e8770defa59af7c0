"""Several replicas of a partition: readers of data take one of them, readers of files show each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import kraftlog
from golden_files import GOLDEN
from kraftlog.cli import commands
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.discover import Discovery
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from kraftlog.tables.all_tables import TABLES, table_named
from kraftlog.tables.log_files import LogFiles
from kraftlog.tables.table import Replicas
from tier_writer import sources, to_folder, write_local

NAMES = ("transactions", "transactions_hanging", "groups", "deleted_records", "releases/3.9.1/clean")
DIRECTORIES = [GOLDEN / name / "log" for name in ("schema_registry/serializers", *NAMES)]
NAMES = [*TABLES, "PartitionRecord", "OffsetCommit"]


def batch(base_offset: int, count: int, epoch: int, text: str = "") -> bytes:
    values = [f"{text or epoch} {base_offset + number}".encode() for number in range(count)]
    options: dict[str, Any] = {"base_offset": base_offset, "partition_leader_epoch": epoch}
    return bytes(kraftlog.encode(pa.table({"value": values}), timestamp_ms=1_700_000_000_000, **options))


def write(folder: Path, *batches: bytes, base_offset: int = 0, **properties: str) -> Path:
    """Write a segment, and what ``meta.properties`` and ``partition.metadata`` say; returns the log directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    if (topic_id := properties.pop("topic_id", None)) is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    if properties:
        lines = [f"{name.replace('_', '.')}={value}\n" for name, value in properties.items()]
        (folder.parent / "meta.properties").write_text("".join(lines))
    return folder.parent


def values(paths: Sequence[Path], **options: Any) -> tuple[list[str], list[str]]:
    """Return the values that records have, and notes."""
    stream = kraftlog.open(paths, **options).records(["value"])
    return [value.decode() for value in stream.to_table()["value"].to_pylist()], stream.notes


@pytest.fixture
def copies(tmp_path: Path) -> Callable[[Path], tuple[Path, Path]]:
    def copy(directory: Path) -> tuple[Path, Path]:
        folders = tmp_path / "a" / "log", tmp_path / "b" / "log"
        for folder in folders:
            shutil.copytree(directory, folder)
        return folders

    return copy


@pytest.mark.sweep(3)
@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: str(path.relative_to(GOLDEN).parent))
def test_equal_replicas_have_the_rows_of_one(directory: Path, copies: Callable[[Path], tuple[Path, Path]]):
    one, other = copies(directory)
    logs = {"A": kraftlog.open(one), "AA": kraftlog.open([one, one]), "AB": kraftlog.open([one, other])}
    for table in NAMES:
        columns = table_named(table).schema
        for level in ("read_uncommitted", "read_committed"):
            how = [*columns.shown, *columns.on_request], ReadOptions(isolation_level=level)
            rows = {name: log.scan(table, *how).to_table().to_pylist() for name, log in logs.items()}
            assert rows["AA"] == rows["A"], table
            if table == "replicas":  # that of each says which directory it is of, and which one is read
                assert [_of_one(row) for row in rows["AB"]] == [_of_one(row) for row in rows["A"] for _ in range(2)]
                assert _chosen(rows["AB"]) == _chosen(rows["A"])
            elif table_named(table).replicas is Replicas.EACH:
                found, expected = ([str(_of_one(row)) for row in rows[name]] for name in ("AB", "A"))
                assert sorted(found) == sorted(2 * expected), table
            elif table == "findings":  # what to do next names all directories
                assert [_without_paths(row) for row in rows["AB"]] == [_without_paths(row) for row in rows["A"]]
            else:
                assert rows["AB"] == rows["A"], table


def _without_paths(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("file", "next_command", "sentence")}


def _of_one(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("directory", "folder", "replica", "is_chosen")}


def _chosen(rows: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(row["topic"], row["partition"], row["directory"]) for row in rows if row["is_chosen"]]


def test_every_table_has_rows_in_one_of_these_directories():
    """So that the test above compares something."""
    logs = [kraftlog.open(path) for path in DIRECTORIES]
    empty = [one for one in NAMES if not any(log.scan(one).to_table().num_rows for log in logs)]
    assert empty == []


METHODS: dict[str, Callable[[kraftlog.Log], Any]] = {
    "stats": lambda log: log.stats([], decompress=True).to_pylist(),
    "space": lambda log: log.space([]).to_pylist(),
    "key_stats": lambda log: log.key_stats([]).to_pylist(),
    "top_keys": lambda log: log.top_keys(5, []).to_pylist(),
    "writes": lambda log: log.writes("hour", []).to_pylist(),
    "grep": lambda log: log.grep(["offset"], value="1").to_table().to_pylist(),
    "filter": lambda log: log.records(["offset"], filter=pa.compute.field("offset") > 3).to_table().to_pylist(),
    "typed": lambda log: log.records(["value"], value_format="string").to_table().to_pylist(),
    "partition_offsets": lambda log: log.partition_offsets("max-timestamp").to_table().to_pylist(),
    "last_stable_offsets": lambda log: log.last_stable_offsets().to_pylist(),
    "lag": lambda log: log.lag().to_table().to_pylist(),
    "partitions": lambda log: [(one.topic, one.partition, one.end_offset) for one in log.partitions],
    "image": lambda log: {name: rows.to_pylist() for name, rows in log.image().image.tables().items()},
}


@pytest.mark.parametrize("method", METHODS)
def test_other_readers_of_data(method: str, copies: Callable[[Path], tuple[Path, Path]]):
    one, other = copies(DIRECTORIES[-1])
    read = METHODS[method]
    alone = read(kraftlog.open(one))
    assert alone
    assert read(kraftlog.open([one, other])) == read(kraftlog.open([one, one])) == alone


def test_following_reads_each_offset_once(copies: Callable[[Path], tuple[Path, Path]]):
    one, other = copies(GOLDEN / "transactions" / "log")
    columns = ["partition", "offset"]
    followers = [kraftlog.follow(paths, columns=columns, topics=["orders"]) for paths in ([one], [one, other])]
    rows = [[row for found in follower.look() for row in found.to_pylist()] for follower in followers]
    assert rows[0] == rows[1] != []


def test_following_goes_on_with_another_replica(tmp_path: Path):
    one = write(tmp_path / "a" / "t-0", batch(0, 5, 0))
    other = write(tmp_path / "b" / "t-0", batch(0, 5, 0))
    follower = kraftlog.follow([one, other], columns=["offset"])
    assert [row["offset"] for found in follower.look() for row in found.to_pylist()] == [*range(5)]
    write(tmp_path / "b" / "t-0", batch(0, 5, 0), batch(5, 2, 1))
    assert [row["offset"] for found in follower.look() for row in found.to_pylist()] == [5, 6]
    write(tmp_path / "a" / "t-0", batch(0, 5, 0), batch(5, 2, 1), batch(7, 1, 2))
    assert [row["offset"] for found in follower.look() for row in found.to_pylist()] == [7]


def test_spark_plans_each_offset_once(copies: Callable[[Path], tuple[Path, Path]]):
    one, other = copies(GOLDEN / "transactions" / "log")
    for table in TABLES:
        if table == "replicas":
            continue  # test_replica_table.py compares each door
        rows = []
        for paths in ([one], [one, other]):
            request = parse_request({"paths": ",".join(map(str, paths)), "table": table})
            found = [rows for part in plan_parts(request) for rows in read(request, part, [])]
            rows.append([str(_without_paths(row)) for part in found for row in part.to_pylist()])
        assert sorted(rows[1]) == sorted((2 if TABLES[table].replicas is Replicas.EACH else 1) * rows[0]), table


def test_the_line_is_that_of_the_last_leader(tmp_path: Path):
    """The other replica is longer: its broker died with a tail that nobody else had."""
    long = write(tmp_path / "a" / "t-0", *(batch(at, 1, 0) for at in range(10)))
    last = write(tmp_path / "b" / "t-0", *(batch(at, 1, 0) for at in range(5)), batch(5, 2, 1))
    found, notes = values([long, last])
    assert found == [f"0 {at}" for at in range(5)] + ["1 5", "1 6"]
    assert notes == [f"t-0: read from {last}; {long} parts from it at offset 5 and ends at offset 10 in leader epoch 0"]


def test_of_one_epoch_the_longer_replica_is_the_line(tmp_path: Path):
    short = write(tmp_path / "a" / "t-0", batch(0, 3, 4))
    long = write(tmp_path / "b" / "t-0", batch(0, 3, 4), batch(3, 1, 4))
    found, notes = values([short, long])
    assert found == ["4 0", "4 1", "4 2", "4 3"]
    assert notes == ["1 partition has several replicas that agree; each offset is read once"]


def test_a_damaged_tail_does_not_count(tmp_path: Path):
    sound = write(tmp_path / "b" / "t-0", batch(0, 3, 0), batch(3, 1, 0))
    damaged = batch(3, 2, 0)
    other = write(tmp_path / "a" / "t-0", batch(0, 3, 0), damaged[:-1] + bytes([damaged[-1] ^ 1]))
    found, notes = values([other, sound])
    assert found == ["0 0", "0 1", "0 2", "0 3"]
    assert any(note.startswith(f"{other}: ") and "crc" in note for note in notes)


def test_offsets_that_the_line_lacks_are_noted(tmp_path: Path):
    old = write(tmp_path / "a" / "t-0", batch(0, 3, 0), batch(3, 3, 0))
    line = write(tmp_path / "b" / "t-0", batch(3, 3, 0), batch(6, 1, 1), base_offset=3)
    stream = kraftlog.open([old, line]).records(["offset"], heal=False)
    assert stream.to_table()["offset"].to_pylist() == [3, 4, 5, 6]
    assert stream.notes == [f"t-0: read from {line}; {old} also has offsets 0 to 2"]


def test_of_replicas_that_end_alike_the_one_that_begins_first_is_read(tmp_path: Path):
    short = write(tmp_path / "a" / "t-0", batch(3, 3, 0), base_offset=3)
    long = write(tmp_path / "b" / "t-0", batch(0, 3, 0), batch(3, 3, 0))
    assert len(values([short, long])[0]) == 6


def test_logs_without_epochs(tmp_path: Path):
    short = write(tmp_path / "a" / "t-0", batch(0, 2, -1))
    long = write(tmp_path / "b" / "t-0", batch(0, 3, -1))
    found, notes = values([short, long])
    assert len(found) == 3
    assert notes == [f"t-0: read from {long}; {short} ends at offset 2 and has no leader epochs to compare"]


def test_folders_that_kafka_moves_or_removes_are_not_the_partition(tmp_path: Path):
    live = write(tmp_path / "a" / "t-0", batch(0, 2, 0))
    for kind in ("future", "stray", "delete"):
        folder = tmp_path / "a" / f"t-0.{'0' * 32}-{kind}"
        write(folder, batch(0, 5, 7), topic_id="another")
        found, notes = values([live / "t-0", folder])
        assert found == ["0 0", "0 1"]
        assert notes == [f"t-0: read from {live}; {live} has a folder that Kafka marked {kind}, which is not read"]
        assert len(values([folder])[0]) == 5


def test_two_topics_of_one_name(tmp_path: Path):
    one = write(tmp_path / "a" / "t-0", batch(0, 2, 0), topic_id="first")
    for number in (0, 1):  # the same partition, or another one of the topic
        other = write(tmp_path / f"b{number}" / f"t-{number}", batch(0, 3, 0), topic_id="second")
        with pytest.raises(ValueError, match=f"have the name t: topic id first in {one} and second in {other}"):
            values([one, other])
    assert kraftlog.open([one, other]).batches().num_rows == 2


def test_two_clusters(tmp_path: Path):
    one = write(tmp_path / "a" / "t-0", batch(0, 2, 0), cluster_id="first")
    other = write(tmp_path / "b" / "u-0", batch(0, 3, 0), cluster_id="second")
    with pytest.raises(ValueError, match=f"several clusters: cluster id first in {one} and second in {other}"):
        values([one, other])
    assert "2 topics, 2 partitions" in repr(kraftlog.open([one, other]))


@pytest.fixture
def reborn(tmp_path: Path) -> list[Path]:
    """Return the directories of two clusters; t is another topic in each of them, and u is in both."""
    paths = []
    for name, epoch in (("first", 0), ("second", 3)):
        path = write(tmp_path / name / "t-0", batch(0, 2, epoch), topic_id=name, cluster_id=f"cluster-{name}")
        write(path / "u-0", batch(0, 1, epoch), topic_id="same")
        write(path / "v-1", batch(0, 4, epoch))
        (path / "t-0" / "notes.txt").write_text("mine")
        (path / "t-0" / f"{7:020d}.log.deleted").write_bytes(b"")
        paths.append(path)
    return paths


ELSE_IN_SPARK = ("crc_ok", "timestamp_type", "headers")


def in_each_door(paths: Sequence[Path], table: str, topic_ids: Sequence[str], cluster_id: str | None) -> list[Any]:
    """Return the rows of a table by Python, with options and with what stands among paths, command line and Spark."""
    columns = [name for name in table_named(table).schema.shown if name not in ELSE_IN_SPARK]
    others = [kraftlog.Identity(tuple(topic_ids), cluster_id)]
    logs = [kraftlog.open(paths, topic_ids=topic_ids, cluster_id=cluster_id), kraftlog.open([*paths, *others])]
    found = [log.scan(table, columns).to_table().to_pylist() for log in logs]
    given = [word for one in topic_ids for word in ("--topic-id", one)]
    given += [] if cluster_id is None else ["--cluster-id", cluster_id]
    with TemporaryDirectory() as folder:
        output = f"{folder}/rows.arrows"
        command = [
            "verify" if table == "errors" else table.replace("_", "-"),
            *map(str, paths),
            *given,
            "--columns",
            ",".join(columns),
        ]
        CliRunner().invoke(commands, [*command, "--format", "arrow", "--output", output], catch_exceptions=False)
        found.append(pa.ipc.open_stream(output).read_all().to_pylist())
    options = {"paths": ",".join(map(str, paths)), "table": table, "onError": "skip", "columns": ",".join(columns)}
    options |= {"topicIds": ",".join(topic_ids)} if topic_ids else {}
    options |= {"clusterId": cluster_id} if cluster_id is not None else {}
    request = parse_request(options)
    parts = plan_parts(request)
    in_spark = [pa.Table.from_batches(read(request, part, []), schema=request.schema).to_pylist() for part in parts]
    return [*found, [row for rows in in_spark for row in rows]]


@pytest.mark.parametrize("table", ["records", "segments", "batches", "errors", "replicas"])
def test_an_option_chooses_one_of_two_topics_or_clusters(reborn: list[Path], table: str):
    for number, name in enumerate(("first", "second")):
        only = reborn[number]
        expected = kraftlog.open(only)
        columns = [one for one in table_named(table).schema.shown if one not in ELSE_IN_SPARK]
        rows = sorted(map(str, expected.scan(table, columns).to_table().to_pylist()))
        assert rows
        for found in in_each_door(reborn, table, [], f"cluster-{name}"):
            assert sorted(map(str, found)) == rows
        for path in reborn:
            (path / "meta.properties").write_text("node.id=1\n")  # directories that tell no cluster
        (other,) = (one for one in reborn if one != only)
        shown = kraftlog.open([only, other / "u-0", other / "v-1"]).scan(table, columns).to_table().to_pylist()
        for found in in_each_door(reborn, table, [name], None):
            assert sorted(map(str, found)) == sorted(map(str, shown))
        for at, path in enumerate(reborn):
            (path / "meta.properties").write_text(f"cluster.id=cluster-{('first', 'second')[at]}\n")


def test_options_of_sql(reborn: list[Path], tmp_path: Path):
    (tmp_path / "both").mkdir()
    for path in reborn:
        shutil.move(path, tmp_path / "both" / path.name)
    query = ["sql", f"{tmp_path}/both/*", "select count(*) as n from t", "--format", "csv"]
    for name in ("first", "second"):
        for option in (["--cluster-id", f"cluster-{name}"], ["--cluster-id", f"cluster-{name}", "--topic-id", name]):
            assert CliRunner().invoke(commands, [*query, *option]).stdout == "n\n2\n"
    assert CliRunner().invoke(commands, query).exit_code != 0


def test_both_options(reborn: list[Path]):
    log = kraftlog.open(reborn, topic_ids="first", cluster_id="cluster-first")
    assert {one.directory for line in log.partitions for one in line.replicas} == {reborn[0]}
    for path in reborn:
        (path / "meta.properties").rename(path / "meta.properties.kept")
    with pytest.raises(ValueError, match=r"topic id first in .* and second in .*; topic_ids \(--topic-id\) chooses"):
        values(reborn)
    for path in reborn:
        (path / "meta.properties.kept").rename(path / "meta.properties")
    with pytest.raises(ValueError, match=r"; cluster_id \(--cluster-id\) chooses one of them"):
        values(reborn)
    for wanted in ({"topic_ids": ["third"]}, {"cluster_id": "third"}, {"topic_ids": ["first", "third"]}):
        there = "first, same, second" if "topic_ids" in wanted else "cluster-first, cluster-second"
        with pytest.raises(ValueError, match=f"nothing has the .* id third; there are {there}$"):
            kraftlog.open(reborn, **wanted)


def test_an_identity_that_cannot_be_read_is_a_fault(reborn: list[Path]):
    (reborn[1] / "t-0" / "partition.metadata").write_text("nonsense")
    log = kraftlog.open(reborn, topic_ids=["first"], cluster_id="cluster-first")
    assert [fault.error for fault in log.unreadable()] == []
    log = kraftlog.open(reborn, topic_ids=["first"])
    assert [fault.error for fault in log.unreadable()] == ["bad_checkpoint"]


def test_the_metadata_log_of_another_cluster_names_no_leader(brokers: tuple[Path, Path]):
    one, two = brokers
    text = (two / "meta.properties").read_text()
    cluster_id = next(line.partition("=")[2] for line in text.splitlines() if line.startswith("cluster.id="))
    (two / "meta.properties").write_text(text.replace(cluster_id, "other"))
    with pytest.raises(ValueError, match="several clusters"):
        _ = kraftlog.open([one, two]).lines
    assert kraftlog.open([one, two], cluster_id="other").found.metadata_log == []
    assert kraftlog.open([one, two], cluster_id=cluster_id).found.metadata_log != []
    assert kraftlog.open([one, two], topics=["orders"], cluster_id="other").found.metadata_log == []


def test_a_replica_without_identity_is_taken_for_the_same(tmp_path: Path):
    one = write(tmp_path / "a" / "t-0", batch(0, 2, 0), topic_id="first", cluster_id="c")
    other = write(tmp_path / "b" / "t-0", batch(0, 3, 0))
    assert len(values([one, other])[0]) == 3


def test_a_damaged_identity_is_noted(tmp_path: Path):
    one = write(tmp_path / "a" / "t-0", batch(0, 2, 0))
    other = write(tmp_path / "b" / "t-0", batch(0, 3, 0))
    (one / "t-0" / "partition.metadata").write_text("nonsense")
    found, notes = values([one, other])
    assert len(found) == 3
    assert any(note.startswith(f"{one}: ") and "nonsense" in note for note in notes)


@pytest.fixture
def brokers(tmp_path: Path) -> tuple[Path, Path]:
    """Return the directory of broker 1, which leads orders-0 and has the metadata log, and of broker 2.

    Broker 2 has a record of a later leader epoch in orders-0.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    shutil.copytree(GOLDEN / "releases" / "3.9.1" / "killed" / "log", one)
    shutil.copytree(one / "orders-0", two / "orders-0")
    text = (one / "meta.properties").read_text()
    (two / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    end = kraftlog.open(one, topics=["orders"]).partitions[0].end_offset
    last = max((two / "orders-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + batch(end, 1, 99))
    return one, two


@pytest.mark.parametrize("topics", [None, ["orders"]])
def test_the_line_is_the_leaders_where_a_metadata_log_names_it(brokers: tuple[Path, Path], topics: list[str] | None):
    one, two = brokers
    both = kraftlog.open([one, two], topics=topics)
    assert [line.folder.parent for line in both.partitions if (line.topic, line.partition) == ("orders", 0)] == [one]
    end = kraftlog.open(one, topics=["orders"]).partitions[0].end_offset
    assert (
        f"{two} parts from it at offset {end} and ends at offset {end + 1} in leader epoch 99" in both.lines.notes()[0]
    )


def test_a_leader_that_is_not_given_chooses_nothing(brokers: tuple[Path, Path], tmp_path: Path):
    one, two = brokers
    three = tmp_path / "three"
    shutil.copytree(two, three)
    (three / "meta.properties").write_text((two / "meta.properties").read_text().replace("node.id=2", "node.id=3"))
    shutil.rmtree(one / "orders-0")
    log = kraftlog.open([one, two, three])
    assert [len(line.replicas) for line in log.partitions if (line.topic, line.partition) == ("orders", 0)] == [2]
    assert log.lines.notes() == ["1 partition has several replicas that agree; each offset is read once"]


def test_a_metadata_log_with_damage_names_no_leader(brokers: tuple[Path, Path]):
    one, two = brokers
    path = one / "__cluster_metadata-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    log = kraftlog.open([one, two])
    assert [line.folder.parent for line in log.partitions if (line.topic, line.partition) == ("orders", 0)] == [two]
    assert any(note.startswith("no leader is taken from the metadata log: ") for note in log.lines.notes())


OPENED: list[str] = []
_HOOK: dict[str, bool] = {}


@contextmanager
def opened() -> Iterator[list[str]]:
    """Return the paths that are opened within."""
    if not _HOOK:  # hooks cannot be removed
        sys.addaudithook(lambda event, args: event == "open" and _HOOK["is_on"] and OPENED.append(str(args[0])))
    OPENED.clear()
    _HOOK["is_on"] = True
    try:
        yield OPENED
    finally:
        _HOOK["is_on"] = False


def test_one_directory_costs_nothing(monkeypatch: pytest.MonkeyPatch):
    directory = DIRECTORIES[-1]

    def paths() -> list[str]:
        with opened() as found:
            kraftlog.open(directory).records(isolation_level="read_committed").to_table()
            return [path for path in found if directory.name in path]

    usual = paths()
    no_others: dict[str, Any] = {"notes": lambda heals: [], "healed": lambda found, notes, **how: found}
    monkeypatch.setattr(LogFiles, "lines", property(lambda log: SimpleNamespace(found=log.found, **no_others)))
    assert usual == paths() != []


def test_replicas_that_agree_are_compared_by_their_ends_alone(tmp_path: Path):
    for name in ("a", "b"):
        for number in range(5):
            write(tmp_path / name / "t-0", batch(number, 1, 0), base_offset=number)
    log = kraftlog.open([tmp_path / "a", tmp_path / "b"])
    with opened() as found:
        assert log.lines.notes() != []
    logs = [path for path in found if path.endswith(".log")]
    assert {Path(path).name for path in logs} == {f"{4:020d}.log"}
    assert isinstance(log.lines.found, Discovery)


def test_two_topics_of_one_name_in_a_tier(tmp_path: Path):
    """They are told apart by the names of its folders, whichever partitions there are of each."""
    ids = ("A" * 22, "B" * 22)
    for number, topic_id in enumerate(ids):
        segments = [replace(one, partition=number) for one in sources(GOLDEN / "transactions" / "log" / "orders-0")]
        write_local(to_folder(tmp_path), segments, topic_id)
    tier = tmp_path / "kafka-tiered-storage"
    with pytest.raises(ValueError, match=f"have the name orders: topic id {ids[0]} in {tier} and {ids[1]}"):
        kraftlog.open(remote_tier=tmp_path).records().to_table()
    for number, topic_id in enumerate(ids):
        log = kraftlog.open(remote_tier=tmp_path, topic_ids=topic_id)
        assert [(line.partition, line.line.directory) for line in log.partitions] == [(number, tier)]
        assert log.records().to_table().num_rows
