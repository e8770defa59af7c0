"""Two clusters against each other: copies with the same offsets, and mirrors with others."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cluster import SmallCluster

import kraftlog
from command_line import run_command
from golden_files import GOLDEN, lines
from golden_releases import RELEASES, folder_of
from kraftlog.audit.against import findings_against
from kraftlog.audit.contents import contents_of
from kraftlog.audit.finding import Finding
from kraftlog.disk.remote_path import RemotePath
from kraftlog.messages.api import encode_messages
from kraftlog.query.session import SqlSession
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read as read_part
from stopped_broker import Broker, evidence_of

ID, OTHER_ID = "AAAAAAAAAAEAAAAAAAAAAQ", "AAAAAAAAAAEAAAAAAAAAAg"


class Message(NamedTuple):
    """A record to write; without an offset it follows the one before it."""

    key: bytes | None
    value: bytes | None
    offset: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def numbered(*numbers: int) -> list[Message]:
    return [Message(b"k%d" % (number % 3), b"v%d" % number) for number in numbers]


def write(folder: Path, messages: Sequence[Message], topic_id: str | None = None, start: int = 0) -> None:
    """Write a batch for each record."""
    folder.mkdir(parents=True)
    data, offset = b"", start
    for one in messages:
        offset = offset if one.offset is None else one.offset
        headers = [{"key": key, "value": value} for key, value in one.headers]
        kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
        columns = {
            "key": pa.array([one.key], pa.binary()),
            "value": pa.array([one.value], pa.binary()),
            "headers": pa.array([headers], kind),
        }
        data += kraftlog.encode(pa.table(columns), base_offset=offset, timestamp_ms=1_700_000_000_000)
        offset += 1
    (folder / f"{start:020d}.log").write_bytes(data)
    if topic_id is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def against(own: Path, other: Path) -> list[Finding]:
    return findings_against(evidence_of(own), evidence_of(other))


def names(findings: list[Finding]) -> list[tuple[str, int | None]]:
    return [(one.code.name, one.offset) for one in findings]


def copies(tmp_path: Path, own: Sequence[Message], other: Sequence[Message], start: int = 0) -> list[Finding]:
    write(tmp_path / "a" / "orders-0", own, ID, own[0].offset or 0)
    write(tmp_path / "b" / "orders-0", other, ID, start)
    return against(tmp_path / "a", tmp_path / "b")


def mirrors(tmp_path: Path, own: Sequence[Message], other: Sequence[Message], start: int = 0) -> list[Finding]:
    write(tmp_path / "a" / "orders-0", own, ID)
    write(tmp_path / "b" / "orders-0", other, OTHER_ID, start)
    return against(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("release", RELEASES)
def test_a_directory_does_not_differ_from_itself(release: str) -> None:
    log = folder_of(release, "clean") / "log"
    assert against(log, log) == []


@pytest.mark.parametrize("name", ["codecs", "compaction", "transactions", "deleted_records"])
def test_golden_directories_do_not_differ_from_themselves(name: str, tmp_path: Path) -> None:
    log = GOLDEN / name / "log"
    assert against(log, log) == []
    other = Path(shutil.copytree(log, tmp_path / "log"))
    for path in other.rglob("partition.metadata"):  # as a mirror
        path.write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
        path.unlink()
    assert [one for one in against(log, other) if one.code.name != "group_offset_differs"] == []


def test_a_backup_of_a_part_is_a_copy(tmp_path: Path) -> None:
    log = folder_of("3.9.1", "clean") / "log"
    for number, options in enumerate(({}, {"end_offset": 40}, {"start_offset": 20})):
        backup = tmp_path / str(number)
        kraftlog.extract(log, backup, topics=["orders", "plain"], **options)  # type: ignore[arg-type]
        found = against(log, backup)
        codes = {one.code.name for one in found if one.topic in ("orders", "plain")}
        assert codes == ({"copy_behind"} if "end_offset" in options else set())
        assert {one.topic for one in found} - {"orders", "plain"} == {"trimmed", "compacted"}


def test_a_record_with_another_content(tmp_path: Path) -> None:
    own = numbered(*range(5))
    other = [*own[:2], own[2]._replace(value=b"other"), own[3], own[4]._replace(headers=(("h", None),))]
    (finding,) = copies(tmp_path, own, other)
    assert (finding.code.name, finding.topic, finding.partition, finding.offset) == ("record_differs", "orders", 0, 2)
    assert finding.known == "2 records between offset 2 and 4 have other contents in the copy"


HEADERS: list[tuple[tuple[str, bytes | None], ...]] = [
    (),
    (("a", b"1"),),
    (("a", b"2"),),
    (("b", b"1"),),
    (("a", None),),
    (("a", b""),),
    (("a", b"1"), ("b", b"2")),
    (("b", b"2"), ("a", b"1")),
    (("a", b"1"), ("a", b"1")),
]


def test_the_content_of_a_record_is_its_key_its_value_and_its_headers_in_order(tmp_path: Path) -> None:
    sides = [None, b"", b"a", b"b", b"ab"]
    messages = [Message(key, value, headers=headers) for key in sides for value in sides for headers in HEADERS]
    for number in range(2):
        write(tmp_path / f"orders-{number}", messages)
    one, other = (np.concatenate([*contents_of(each, [])]) for each in kraftlog.open(tmp_path).partitions)
    assert len(set(one["hash"].tolist())) == len(messages)
    assert one["hash"].tolist() == other["hash"].tolist()
    assert len(set(one["key"].tolist())) == len(sides)


def test_a_copy_lacks_records_and_has_others(tmp_path: Path) -> None:
    own = [one._replace(offset=at) for at, one in enumerate(numbered(*range(6)))]
    assert names(copies(tmp_path / "1", own, [own[0], own[3], own[5]])) == [("record_missing", 1)]
    assert names(copies(tmp_path / "2", [own[0], own[3], own[5]], own)) == [("record_added", 1)]


def test_a_copy_that_begins_later_or_ends_earlier_lacks_nothing(tmp_path: Path) -> None:
    own = [one._replace(offset=at) for at, one in enumerate(numbered(*range(6)))]
    assert names(copies(tmp_path / "1", own, own[2:4], start=2)) == [("copy_behind", 4)]
    assert names(copies(tmp_path / "2", own[1:4], own)) == []  # it is newer
    assert names(copies(tmp_path / "3", own, own[2:], start=2)) == []


def test_parts_of_a_log_with_transactions_are_copies(tmp_path: Path) -> None:
    """An extract has the markers after its end, and may leave out records of aborted transactions."""
    parts = {"whole": {0, 1, 2, 3, 4, 5}, "first": {0, 1, 3, 5}, "committed": {0, 1, 4, 5}}
    for name, offsets in parts.items():
        (tmp_path / name).mkdir()
        cluster = SmallCluster(tmp_path / name)
        for offset in range(6):
            if offset not in offsets:
                cluster.skip("orders-0")
            elif offset % 2 == 0:
                cluster.data("orders-0", 1, 0)
            else:
                cluster.marker("orders-0", 1, 0, "ABORT" if offset == 3 else "COMMIT")
        (cluster.write() / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}\n")
    whole, first, committed = (tmp_path / name for name in parts)
    assert names(against(whole, first)) == [("copy_behind", 4)]
    assert names(against(whole, committed)) == names(against(first, whole)) == names(against(committed, whole)) == []


def test_a_compacted_topic_may_lack_records(tmp_path: Path) -> None:
    policy = {"orders": {"cleanup.policy": "compact"}, "others": {}}
    broker = Broker(tmp_path / "a", policy)
    other = Path(shutil.copytree(broker.path, tmp_path / "b"))
    for topic in policy:
        for path in (other / f"{topic}-0").glob(f"{10:020d}.*"):
            path.unlink()
    found = against(broker.path, other)
    assert [(one.code.name, one.topic, one.offset) for one in found] == [("record_missing", "others", 10)]


def test_a_damaged_partition_is_not_compared(tmp_path: Path) -> None:
    own = [one._replace(offset=at) for at, one in enumerate(numbered(*range(6)))]
    copies(tmp_path, own, own[:1] + own[3:])
    path = tmp_path / "b" / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    evidence = evidence_of(tmp_path / "a")
    assert findings_against(evidence, evidence_of(tmp_path / "b")) == []
    assert [one.error for one in evidence.read.faults] == ["bad_crc"]


def test_a_mirror_has_the_same_records_at_other_offsets(tmp_path: Path) -> None:
    own = numbered(*range(9))
    other = [one._replace(offset=at * 2 + 100) for at, one in enumerate(own)]
    assert mirrors(tmp_path, own, other, start=100) == []


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 4, 5, 6, 7], [("record_missing", 2)]),
        ([2, 3, 4, 5, 6, 7], []),  # it began later, or has retention
        ([0, 1, 2, 3, 4, 5], [("copy_behind", 6)]),
        ([0, 1, 2, 3, 2, 3, 4, 5, 6, 7], []),  # at least once
        ([0, 1, 2, 99, 3, 4, 5, 6, 7], [("record_added", None)]),
        ([98, 0, 1, 2, 3, 4, 5, 6, 7, 99], []),  # before the start of this one, and after its end
        ([0, 4, 2, 3, 1, 5, 6, 7], [("order_differs", 1)]),  # 1 and 4 have the same key
        ([1, 0, 2, 3, 4, 5, 6, 7], []),  # other keys
        ([50, 51], []),  # nothing in common
    ],
)
def test_a_mirror_that_differs(tmp_path: Path, numbers: list[int], expected: list[tuple[str, int | None]]) -> None:
    assert names(mirrors(tmp_path, numbered(*range(8)), numbered(*numbers))) == expected


def test_records_of_the_same_content_prove_nothing(tmp_path: Path) -> None:
    same = Message(b"k", b"v")
    own = [*numbered(0), same, same, same, *numbered(1)]
    assert mirrors(tmp_path, own, [*numbered(0), same, *numbered(1)]) == []


def test_the_order_of_partitions_that_were_divided_otherwise_is_not_compared(tmp_path: Path) -> None:
    write(tmp_path / "b" / "orders-1", numbered(1), OTHER_ID)
    assert names(mirrors(tmp_path, numbered(*range(8)), numbered(0, 4, 2, 3, 1, 5, 6, 7))) == []


def test_a_mirror_under_the_alias_of_its_source(tmp_path: Path) -> None:
    write(tmp_path / "a" / "orders-0", numbered(*range(4)), ID)
    write(tmp_path / "b" / "primary.orders-0", numbered(0, 3), OTHER_ID)
    write(tmp_path / "b" / "orders-0", numbered(7, 8), OTHER_ID)  # the other cluster's own
    assert names(against(tmp_path / "a", tmp_path / "b")) == []
    write(tmp_path / "b" / "primary.checkpoints.internal-0", [], OTHER_ID)
    assert names(against(tmp_path / "a", tmp_path / "b")) == [("record_missing", 1)]


def mirror_record(name: str, **fields: object) -> Message:
    """Return a record of MirrorMaker."""
    types = {"partition": pa.int32(), "upstream_offset": pa.int64(), "offset": pa.int64()}
    sides = {"Key": ("group", "topic", "partition"), "Value": ("upstream_offset", "offset", "metadata")}
    data = []
    for side, columns in sides.items():
        row = {column: pa.array([fields[column]], types.get(column)) for column in columns if column in fields}
        data.append(encode_messages(f"{name}{side}", pa.table(row))[0].as_py())
    return Message(*data)


def sync(upstream: int, downstream: int, partition: int = 0) -> Message:
    fields = {"topic": "orders", "partition": partition, "upstream_offset": upstream, "offset": downstream}
    return mirror_record("OffsetSync", **fields)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([sync(3, 2)], []),
        ([sync(3, 3)], [("offset_sync_mismatch", 3)]),
        ([sync(3, 3), sync(3, 2)], []),  # the last one counts
        ([sync(3, 3, partition=1)], []),
        ([sync(30, 3)], []),  # no such record
        ([sync(3, 30)], []),
    ],
)
@pytest.mark.parametrize("side", ["a", "b"])
def test_pairs_of_offsets(tmp_path: Path, side: str, messages: list[Message], expected: object) -> None:
    mirrors(tmp_path, numbered(*range(6)), numbered(1, 2, 3, 4, 5))
    write(tmp_path / side / "mm2-offset-syncs.backup.internal-0", messages)
    assert names(against(tmp_path / "a", tmp_path / "b")) == expected


def checkpoint(upstream: int, downstream: int, topic: str = "orders") -> Message:
    fields = {"group": "g", "topic": topic, "partition": 0, "upstream_offset": upstream, "offset": downstream}
    return mirror_record("Checkpoint", **fields, metadata="")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([checkpoint(3, 2)], []),
        ([checkpoint(3, 0)], []),  # earlier: records are read twice
        ([checkpoint(3, 4)], [("checkpoint_skips_records", 3)]),
        ([checkpoint(3, 4), checkpoint(3, 2)], []),
        ([checkpoint(3, 4, topic="others")], []),
        ([checkpoint(6, 5)], []),
    ],
)
def test_checkpoints_of_groups(tmp_path: Path, messages: list[Message], expected: object) -> None:
    mirrors(tmp_path, numbered(*range(6)), numbered(1, 2, 3, 4, 5))
    write(tmp_path / "b" / "primary.checkpoints.internal-0", messages)
    assert names(against(tmp_path / "a", tmp_path / "b")) == expected


def test_a_record_that_the_mirror_has_again_after_the_checkpoint_is_not_skipped(tmp_path: Path) -> None:
    mirrors(tmp_path, numbered(*range(6)), numbered(1, 2, 3, 4, 3, 4, 5))
    write(tmp_path / "b" / "primary.checkpoints.internal-0", [checkpoint(3, 4)])
    assert names(against(tmp_path / "a", tmp_path / "b")) == []


def test_topics_and_partitions_that_were_not_copied(tmp_path: Path) -> None:
    not_mirrored = ("mm2-configs.b.internal-0", "connect-offsets-internal-0", "__own-0", ".own-0")
    for name in ("orders-0", "orders-1", "payments-0", *not_mirrored):
        write(tmp_path / "a" / name, numbered(1, 2), ID)
    write(tmp_path / "a" / "empty-0", [], ID)
    write(tmp_path / "b" / "orders-0", numbered(1, 2), ID)
    found = [(one.code.name, one.topic, one.partition) for one in against(tmp_path / "a", tmp_path / "b")]
    assert found == [("partition_not_copied", "orders", 1), ("topic_not_copied", "payments", None)]
    (tmp_path / "b" / "meta.properties").write_text("version=1\nnode.id=3\n")
    assert against(tmp_path / "a", tmp_path / "b") == []  # one of several brokers


def test_the_metadata_log_of_a_cluster_tells_which_topics_it_has(tmp_path: Path) -> None:
    own = Broker(tmp_path / "a", {"x": {}, "y": {}, "z": {}})
    other = Broker(tmp_path / "b", {"x": {}, "y": {}})
    shutil.rmtree(other.folder("y"))  # another broker has it
    found = [(one.code.name, one.topic) for one in against(own.path, other.path)]
    assert found == [("topic_not_copied", "z")]


def test_directories_without_a_common_topic_are_refused(tmp_path: Path) -> None:
    """Otherwise a wrong directory would pass for a backup without differences."""
    write(tmp_path / "a" / "orders-0", numbered(1), ID)
    write(tmp_path / "b" / "payments-0", numbered(1), ID)
    write(tmp_path / "c" / "__consumer_offsets-0", [], ID)
    for other, has in (("b", "payments"), ("c", "no topic of users")):
        with pytest.raises(ValueError, match=f"this cluster has orders, and the other one has {has}"):
            against(tmp_path / "a", tmp_path / other)
    result = run_command("audit", tmp_path / "a", "--against", tmp_path / "b", "--output", tmp_path / "f.csv")
    assert (result.returncode, (tmp_path / "f.csv").exists()) == (2, False)


def test_settings_that_differ(tmp_path: Path) -> None:
    topics = {"orders": {"retention.ms": "1000"}, "payments": {}}
    own, mirror = Broker(tmp_path / "a", topics), Broker(tmp_path / "b", topics)
    copy = Path(shutil.copytree(own.path, tmp_path / "c"))
    assert against(own.path, mirror.path) == against(own.path, copy) == []
    own.configure((2, "orders"), "retention.ms", "2000")
    own.configure((2, "payments"), "cleanup.policy", "compact")
    for other, expected in ((mirror.path, ["orders"]), (copy, ["orders", "payments"])):
        found = against(own.path, other)
        assert [(one.code.name, one.topic) for one in found] == [("config_differs", topic) for topic in expected]
        assert found[0].known == "retention.ms is 2000, in the other cluster 1000"
    mirror.configure((2, "orders"), "retention.ms", "2000")
    for broker, value in ((own, "1"), (mirror, "2")):
        broker.configure((2, "orders"), "min.insync.replicas", value)
    assert against(own.path, mirror.path) == []  # MirrorMaker does not copy that
    shutil.rmtree(copy / "__cluster_metadata-0")
    assert against(own.path, copy) == []


def test_offsets_of_groups_in_a_copy(tmp_path: Path) -> None:
    topics: dict[str, dict[str, str]] = {"orders": {}}
    broker = Broker(tmp_path / "a", topics)
    with kraftlog.LogStore(broker.path) as store, store.consumer(group="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll()
        consumer.commit()
    copy = Path(shutil.copytree(broker.path, tmp_path / "b"))
    assert against(broker.path, copy) == []
    with kraftlog.LogStore(copy) as store:
        producer = store.producer()
        producer.send("orders", pa.table({"value": ["v"]}), partition=0)
        with store.consumer(group="g") as consumer:
            consumer.subscribe(["orders"])
            consumer.poll()
            consumer.commit()
    (finding,) = against(broker.path, copy)
    assert finding.code.name == "group_offset_differs"
    assert finding.known == "group g has committed offset 40, in the copy offset 41"
    for path in copy.glob("__consumer_offsets-*"):
        shutil.rmtree(path)
    assert against(broker.path, copy) == []


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_as_a_plain_comparison_of_mirrors(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """A twin in plain Python says which records are missing, added, or out of order."""
    chance = random.Random(seed)
    own = numbered(*(chance.randrange(12) for _ in range(chance.randrange(1, 12))))
    other = [one for one in own if chance.random() < 0.8]
    for _ in range(chance.randrange(3)):
        extra = chance.choice([*own, *numbered(40)])
        other.insert(chance.randrange(len(other) + 1), extra)
    if len(other) > 1 and chance.random() < 0.5:
        at = chance.randrange(len(other) - 1)
        other[at : at + 2] = reversed(other[at : at + 2])
    found = names(mirrors(tmp_path_factory.mktemp("pair"), own, other))
    counts = Counter(own)
    unique = {one: offset for offset, one in enumerate(own) if counts[one] == 1}
    matched = {one: other.index(one) for one in unique if one in other}
    expected: dict[str, int | None] = {}
    if matched:
        first, last = min(unique[one] for one in matched), max(unique[one] for one in matched)
        missing = [at for one, at in unique.items() if first <= at < last and one not in other]
        if missing:
            expected["record_missing"] = min(missing)
        span = range(min(matched.values()), max(matched.values()))
        if any(other[at] not in counts for at in span):
            expected["record_added"] = None
        behind = [at for at, one in enumerate(own) if at > last and one not in other]
        if behind:
            expected["copy_behind"] = behind[0]
    order: dict[bytes | None, list[int]] = {}
    for one, _ in sorted(matched.items(), key=lambda item: item[1]):
        order.setdefault(one.key, []).append(unique[one])
    is_in_order = all(offsets == sorted(offsets) for offsets in order.values())
    assert {name: at for name, at in found if name != "order_differs"} == expected
    assert any(name == "order_differs" for name, _ in found) is not is_in_order


def test_golden_records_of_mirror_maker_are_written_like_those_of_the_tests() -> None:
    rows = lines(GOLDEN / "mirror_maker" / "records.jsonl")
    row = next(row for row in rows if row["topic"].startswith("mm2"))
    made = sync(row["upstream_offset"], row["value_offset"], row["key_partition"])
    assert (made.key, made.value) == (bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))


def test_the_command(tmp_path: Path) -> None:
    copies(tmp_path, numbered(*range(5)), [*numbered(*range(4)), Message(b"k", b"other")])
    own, other = str(tmp_path / "a"), str(tmp_path / "b")
    done = run_command("audit", own, "--against", other, "--format", "jsonl")
    assert done.returncode == 1
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["code"], row["severity"], row["topic"], row["partition"], row["offset"]) == (
        *("record_differs", "error", "orders"),
        *(0, 4),
    )
    sentences = run_command("audit", own, "--against", other)
    assert "1 record at offset 4 has other contents in the copy" in sentences.stdout
    same = shutil.copytree(own, tmp_path / "same")
    assert run_command("audit", own, "--against", same).returncode == 0
    refused = run_command("audit", own, "--against", str(tmp_path / "c"))
    assert refused.returncode == 2
    assert "no such file or directory" in refused.stderr


def test_every_door_compares_with_another_cluster(tmp_path: Path) -> None:
    for topic, node in (("orders", "b"), ("payments", "c")):
        write(tmp_path / "a" / f"{topic}-0", numbered(*range(5)))
        write(tmp_path / node / f"primary.{topic}-0", numbered(0, 1, 3, 4))
    write(tmp_path / "c" / "primary.checkpoints.internal-0", [])
    own, others = str(tmp_path / "a"), [str(tmp_path / name) for name in "bc"]
    log = kraftlog.open(own)
    rows = log.findings(against=others).to_pylist()
    assert [(row["code"], row["topic"]) for row in rows] == [("record_missing", of) for of in ("orders", "payments")]
    assert kraftlog.open(own, topics=["orders"]).findings(against=others).to_pylist() == rows[:1]
    lacking = log.findings(["code", "topic"], against=tmp_path / "c").to_pylist()
    assert [tuple(row.values()) for row in lacking] == [("record_missing", "payments"), ("topic_not_copied", "orders")]
    with SqlSession(log, against=others) as session:
        assert session.query("select * from findings").read_all().select(list(rows[0])).to_pylist() == rows
    options = [word for path in others for word in ("--against", path)]
    question = "select topic from findings order by 1"
    done = run_command("sql", own, question, *options, "--format", "csv")
    assert done.stdout.split() == ["topic", "orders", "payments"]
    request = parse_request({"path": own, "table": "findings", "against": json.dumps(others)})
    (part,) = plan_parts(request)
    (batch,) = read_part(request, part, [])
    assert batch.select(list(rows[0])).to_pylist() == rows


def test_the_paths_of_another_cluster_have_the_storage_options_of_spark() -> None:
    given = {"path": "s3://a/x", "table": "findings", "storageOptions": '{"region": "eu-west-1"}'}
    (path,) = parse_request({**given, "against": "s3://user:hunter2@b/y"}).options.against
    assert path == RemotePath.parse("s3://user:hunter2@b/y", {"region": "eu-west-1"})
    assert "hunter2" not in repr(parse_request({**given, "against": "s3://user:hunter2@b/y"}).options)


def test_the_command_names_what_it_could_not_compare(tmp_path: Path) -> None:
    copies(tmp_path, numbered(*range(5)), numbered(*range(5)))
    path = tmp_path / "b" / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    done = run_command("audit", str(tmp_path / "a"), "--against", str(tmp_path / "b"))
    assert done.returncode == 1
    assert f"bad_crc: {path}: " in done.stderr  # the partition of the other side has the same name
    done = run_command("audit", str(tmp_path / "b"), "--against", str(tmp_path / "a"))
    assert f"bad_crc: {path}: " in done.stderr


@pytest.mark.parametrize("other", ["a", "a/", "./a", "link", "a/orders-0"])
def test_a_directory_is_not_compared_with_itself(tmp_path: Path, other: str) -> None:
    write(tmp_path / "a" / "orders-0", numbered(1, 2), ID)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    done = run_command("audit", "a", "--against", other, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a/orders-0 is on both sides" in done.stderr


def in_cluster(directory: Path, cluster_id: str) -> None:
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\n")


def test_a_topic_that_was_created_again_is_no_mirror(tmp_path: Path) -> None:
    """The backup has the topic as it was before: with more partitions, and other records."""
    for partition in range(3):
        write(tmp_path / "a" / f"orders-{partition}", numbered(*range(5)), ID)
    write(tmp_path / "b" / "orders-0", numbered(0, 1, 4, 3), OTHER_ID)
    for directory in "ab":
        in_cluster(tmp_path / directory, "one")
    (finding,) = against(tmp_path / "a", tmp_path / "b")
    assert (finding.code.name, finding.topic, finding.partition) == ("topic_created_again", "orders", None)
    assert finding.known == f"the topic has the id {ID}, in the other cluster {OTHER_ID}"
    found = run_command("audit", tmp_path / "a", "--against", tmp_path / "b")
    assert (found.returncode, len(found.stdout.splitlines())) == (1, 1)
    for directory in "ab":
        write(tmp_path / directory / "others-0", numbered(1), ID)
    assert [one.topic for one in against(tmp_path / "a", tmp_path / "b")] == ["orders"]
    in_cluster(tmp_path / "b", "two")  # a mirror
    codes = {name for name, _ in names(against(tmp_path / "a", tmp_path / "b"))}
    assert codes
    assert "topic_created_again" not in codes
    (tmp_path / "b" / "meta.properties").unlink()  # not known
    assert "topic_created_again" not in {name for name, _ in names(against(tmp_path / "a", tmp_path / "b"))}
