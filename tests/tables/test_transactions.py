"""The table ``transactions``, and the records of one, against what Kafka's own classes said of its logs."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN, lines
from kraftlog import LogStore
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan
from segments_of_transactions import with_other_marker

SCENARIOS = ["transactions", "transactions_tv0", "transactions_hanging", "transactions_live"]
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
DECIDED = {"PrepareCommit": "committed", "PrepareAbort": "aborted"}


def decided(scenario: str) -> list[tuple[Any, ...]]:
    """Return what the coordinator decided, as Kafka's reader of ``__transaction_state`` has it."""
    found = []
    for line in lines(GOLDEN / scenario / "expected" / "transaction_state.jsonl"):
        value = (line.get("value") or {}).get("data")
        state = DECIDED.get(STATES[value["transactionStatus"]]) if value else None
        if state is not None and value["transactionPartitions"]:
            partitions = {
                (each["topic"], one) for each in value["transactionPartitions"] for one in each["partitionIds"]
            }
            found.append(
                (
                    line["key"]["data"]["transactionalId"],
                    value["producerId"],
                    value["producerEpoch"],
                    state,
                    value["transactionLastUpdateTimestampMs"],
                    tuple(sorted(partitions)),
                )
            )
    return sorted(found)


def partitions_of(row: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((part["topic"], part["partition"]) for part in row["partitions"])


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0", "transactions_hanging"])
def test_each_decision_of_the_coordinator(scenario: str):
    columns = ["transactional_id", "producer_id", "producer_epoch", "state", "decision_timestamp_ms", "partitions"]
    rows = kraftlog.open(GOLDEN / scenario / "log").transactions(columns).to_pylist()
    found = [row for row in rows if row["state"] != "open"]
    assert sorted((*list(row.values())[:5], partitions_of(row)) for row in found) == decided(scenario)
    assert {part["state"] for row in found for part in row["partitions"]} <= {"committed", "aborted", None}
    assert all(part["state"] == row["state"] for row in found for part in row["partitions"] if part["state"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_part_is_in_one_transaction(scenario: str):
    log = kraftlog.open(GOLDEN / scenario / "log")
    names = ("topic", "partition", "first_offset", "marker_offset", "state", "records_count")
    parts = [tuple(row[name] for name in names) for row in log.partition_transactions().to_pylist()]
    found = [
        tuple(part[name] for name in names)
        for row in log.transactions().to_pylist()
        for part in row["partitions"]
        if part["first_offset"] is not None or part["marker_offset"] is not None
    ]
    assert sorted(found, key=str) == sorted(parts, key=str)


def test_hanging_transactions_stand_alone():
    """What a coordinator does not list is none of its transactions: ``hanging`` shows it, too."""
    log = kraftlog.open(GOLDEN / "transactions_hanging" / "log")
    (row,) = log.transactions().filter(pa.compute.field("state") == "open").to_pylist()
    (hanging,) = log.hanging_transactions().to_pylist()
    assert row["transactional_id"] is None
    assert [part["first_offset"] for part in row["partitions"]] == [hanging["start_offset"]]


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_input_offsets(scenario: str):
    commits: dict[int, list[dict[str, Any]]] = defaultdict(list)
    expected = defaultdict(list)
    for line in lines(GOLDEN / scenario / "expected" / "consumer_offsets.jsonl"):
        if not line["is_transactional"]:
            continue
        if "control_type" in line:
            state = {"COMMIT": "committed", "ABORT": "aborted"}[line["control_type"]]
            expected[line["producer_id"], state].append(commits.pop(line["producer_id"], []))
        elif line["key"]["name"] == "OffsetCommitKey":
            key, value = line["key"]["data"], line["value"]["data"]
            commits[line["producer_id"]].append({**key, "offset": value["offset"]})
    for producer_id, still_open in commits.items():
        expected[producer_id, "open"].append(still_open)
    rows = kraftlog.open(GOLDEN / scenario / "log").transactions(["producer_id", "state", "input_offsets"]).to_pylist()
    found = defaultdict(list)
    for row in rows:
        if row["input_offsets"]:
            found[row["producer_id"], row["state"]].append(row["input_offsets"])
    assert found
    assert found == {key: lists for key, lists in expected.items() if any(lists)}


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_how_they_ended(scenario: str):
    """The scenario says: tx-h times out, tx-d is fenced by a newer producer, all others end their transactions."""
    rows = kraftlog.open(GOLDEN / scenario / "log").transactions().to_pylist()
    ended_by = {(row["transactional_id"], row["ended_by"]) for row in rows if row["state"] == "aborted"}
    assert {how for name, how in ended_by if name == "tx-h"} == {"timeout"}
    fenced = min(row["producer_epoch"] for row in rows if row["transactional_id"] == "tx-d")
    (how,) = {row["ended_by"] for row in rows if (row["transactional_id"], row["producer_epoch"]) == ("tx-d", fenced)}
    assert how == ("newer producer" if scenario == "transactions_tv0" else None)  # version 2 does not tell
    others = {how for name, how in ended_by if name not in ("tx-h", "tx-d")}
    assert others <= ({"client"} if scenario == "transactions_tv0" else {"client", None})
    assert {row["ended_by"] for row in rows if row["state"] == "committed"} == {"client"}
    assert {row["ended_by"] for row in rows if row["state"] == "open"} == {None}


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_records_of_a_transaction(scenario: str):
    """Values name the transactional id that wrote them; offsets are those of the parts."""
    log = kraftlog.open(GOLDEN / scenario / "log")
    records = log.records(["topic", "partition", "offset", "producer_id"], include_control=True).to_table().to_pylist()
    of_epoch = defaultdict(list)
    for row in log.transactions().to_pylist():
        of_epoch[row["producer_id"], row["producer_epoch"]].append(row)
    assert len(of_epoch) > 5
    for transaction, rows in of_epoch.items():
        stream = log.records(["topic", "partition", "offset", "value"], transaction=transaction)
        found = stream.to_table().to_pylist()
        expected = [
            (one["topic"], one["partition"], one["offset"])
            for part in sorted((p for row in rows for p in row["partitions"]), key=lambda p: p["first_offset"] or 0)
            for one in records
            if (one["topic"], one["partition"]) == (part["topic"], part["partition"])
            and part["first_offset"] is not None
            and one["producer_id"] == transaction[0]
            and part["first_offset"] <= one["offset"]
            and (part["marker_offset"] is None or one["offset"] < part["marker_offset"])
        ]
        assert sorted((one["topic"], one["partition"], one["offset"]) for one in found) == sorted(expected)
        ids = {one["value"].split(b"#")[0].decode() for one in found if one["topic"] == "orders"}
        assert ids <= {row["transactional_id"] for row in rows}
        assert len(stream.notes) == (len(rows) > 1)


def test_markers_and_filters_of_one_transaction():
    log = kraftlog.open(GOLDEN / "transactions" / "log")
    rows = log.records(["partition", "control_type"], transaction=(4, 1), include_control=True).to_table().to_pylist()
    markers = [row["partition"] for row in rows if row["control_type"] == "ABORT"]
    assert markers == [1, 2]
    first = pa.compute.field("partition") == 1
    few = log.records(["partition"], transaction=(4, 1), filter=first).to_table()["partition"].to_pylist()
    assert few == [1] * (sum(row["partition"] == 1 for row in rows) - 1)
    assert log.records(["offset"], transaction=(4, 1), isolation_level="read_committed").to_table().num_rows == 0
    with pytest.raises(ValueError, match=r"no transaction 4:9: the last epochs of producer id 4 are 1, 3, 4"):
        log.records(transaction=(4, 9)).to_table()
    with pytest.raises(ValueError, match="of the table records, not of batches"):
        log.scan("batches", transaction=(4, 1))


@pytest.mark.parametrize("states", [["open"], ["aborted"], ["committed", "open"], ["torn"]])
def test_the_command_shows_some_states(tmp_path: Path, states: list[str]):
    log = tmp_path / "log"
    shutil.copytree(GOLDEN / "transactions" / "log", log)
    with_other_marker(log, "orders-1", 1)
    columns = ["producer_id", "producer_epoch"]
    expected = [
        row for row in kraftlog.open(log).transactions([*columns, "state"]).to_pylist() if row.pop("state") in states
    ]
    options = [each for state in states for each in ("--state", state)]
    done = run_command("transactions", log, *options, "--columns", ",".join(columns), "--format", "jsonl")
    assert (done.returncode, [json.loads(line) for line in done.stdout.splitlines()]) == (0, expected)
    assert expected


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_a_torn_transaction_is_a_fault(tmp_path: Path, scenario: str):
    log = tmp_path / "log"
    shutil.copytree(GOLDEN / scenario / "log", log)
    assert "torn_transaction" not in {fault.error for fault in kraftlog.open(log).verify()}
    offset = with_other_marker(log, "orders-1", 1)
    (fault,) = [fault for fault in kraftlog.open(log).verify() if fault.error == "torn_transaction"]
    epoch, expected, found = (0, "ABORT", "COMMIT") if scenario == "transactions_tv0" else (5, "COMMIT", "ABORT")
    what = f"expected {expected}, as its coordinator decided; found {found} at offset {offset}"
    assert fault.message == f"orders-1: transaction 1:{epoch} of transactional id tx-a is torn: {what}"
    assert (fault.topic, fault.partition, fault.base_offset) == ("orders", 1, offset)
    rows = kraftlog.open(log).transactions(["transactional_id", "state", "contradiction"]).to_pylist()
    (torn,) = [row for row in rows if row["state"] == "torn"]
    assert torn["contradiction"] == f"orders-1: {what}"
    # without the topics of the coordinator, the markers of version 2 still contradict each other
    shutil.rmtree(log / "__transaction_state-0")
    shutil.rmtree(log / "__transaction_state-1")
    errors = [fault.error for fault in kraftlog.open(log, topics=["orders"]).verify()]
    assert errors.count("torn_transaction") == (scenario == "transactions")


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "base_offset", "is_torn"),
    [
        (-60_000, 60_000, 0, True),
        (-60_000, 60_000, 5, False),
        (50_000, 60_000, 0, False),
        (-60_000, -50_000, 0, False),
        (-60_000, None, 0, False),
    ],
    ids=["whole", "its start was deleted", "made again later", "an older copy", "one marker"],
)
def test_a_log_without_the_markers(
    tmp_path: Path, before_ms: int, after_ms: int | None, base_offset: int, is_torn: bool
):
    """Only a log from before a transaction until after it shows that its marker was never written.

    Markers tell that, whose time a broker sets; records may have any time.
    """
    shutil.copytree(GOLDEN / "transactions_tv0" / "log", log := tmp_path / "log")
    decided = kraftlog.open(log).transactions(["decision_timestamp_ms", "state"]).to_pylist()
    times = [row["decision_timestamp_ms"] for row in decided if row["state"] != "open"]
    shutil.rmtree(log / "orders-1")
    (log / "orders-1").mkdir()
    markers = [(min(times), before_ms), *([] if after_ms is None else [(max(times), after_ms)])]
    batches = [
        kraftlog.encode_marker(
            "COMMIT", producer_id=999, producer_epoch=at, base_offset=base_offset + at, timestamp_ms=of + ms
        ).to_pybytes()
        for at, (of, ms) in enumerate(markers)
    ]
    value = pa.table({"value": [b"v"], "timestamp_ms": [1]})  # as a producer may say it
    batches.append(kraftlog.encode(value, base_offset=base_offset + len(batches)).to_pybytes())
    (log / "orders-1" / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    rows = kraftlog.open(log).transactions(["producer_id", "state", "partitions", "contradiction"]).to_pylist()
    ended = [row for row in rows if row["state"] != "open" and row["producer_id"] != 999]
    states = {(row["state"], part["state"]) for row in ended for part in row["partitions"] if part["partition"] == 1}
    assert states == {("torn", "missing") if is_torn else ("committed", None), ("aborted", None)}
    torn = [row for row in rows if row["state"] == "torn"]
    assert bool(torn) == is_torn
    assert all(row["contradiction"].endswith("as its coordinator completed; found no marker") for row in torn)
    assert [fault.topic for fault in kraftlog.open(log).verify() if fault.error == "torn_transaction"] == (
        ["orders"] * len(torn)
    )


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_an_older_copy_of_a_partition_tears_nothing(tmp_path: Path, scenario: str):
    """A partition that ends before any of its last markers, as on a replica that lags, beside a newer coordinator."""
    log = shutil.copytree(GOLDEN / scenario / "log", tmp_path / "log")
    cuts = 0
    for path in sorted((log / "orders-1").glob("*.log"), reverse=True):
        data = path.read_bytes()
        headers = np.concatenate([np.empty(0, HEADER_DTYPE), *HeaderScan(data).headers()])
        for position in headers["position"][headers["control_type"] >= 0].tolist()[:-4:-1]:
            path.write_bytes(data[:position])
            opened = kraftlog.open(log)
            assert "torn" not in opened.transactions(["state"], strict=False)["state"].to_pylist()
            cuts += 1
        path.unlink()
        if cuts >= 3:
            break
    assert cuts >= 3


def test_files_of_two_clusters():
    """Each file is checked, and a note says that transactions are not."""
    notes: list[str] = []
    folders = [GOLDEN / scenario / "log" for scenario in ("transactions", "transactions_tv0")]
    assert list(kraftlog.open(folders).verify(notes=notes)) == []
    (note,) = notes
    assert note.startswith("transactions are not compared across partitions: ")


def test_the_coordinator_counts_whichever_topics_are_asked_for(tmp_path: Path):
    log = kraftlog.open(GOLDEN / "transactions_tv0" / "log", topics=["orders"])
    rows = log.transactions(["transactional_id", "identified_by", "partitions"]).to_pylist()
    assert "partition" not in {row["identified_by"] for row in rows}
    states = {part["state"] for row in rows for part in row["partitions"] if part["topic"] == "__consumer_offsets"}
    assert states == {None}
    shutil.copytree(GOLDEN / "transactions_tv0" / "log" / "orders-0", tmp_path / "orders-0")
    alone = kraftlog.open(tmp_path).transactions().to_pylist()
    assert {row["identified_by"] for row in alone} == {"partition"}


def test_log_store(tmp_path: Path):
    """Transactions of a store over several partitions, ended in each way; one is under way."""
    values = pa.table({"key": [b"%d" % number for number in range(20)], "value": [b"v"] * 20})
    with LogStore(tmp_path / "store") as store:
        store.create_topic("orders", 3)
        producer = store.producer("etl")
        for is_commit in (True, False, True):
            producer.begin_transaction()
            producer.send("orders", values)
            producer.commit_transaction() if is_commit else producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", values)
        newer = store.producer("etl")
        newer.begin_transaction()
        newer.send("orders", values)
        log = kraftlog.open(tmp_path / "store")
        rows = log.transactions().to_pylist()
        assert [row["state"] for row in rows] == ["committed", "aborted", "committed", "aborted", "open"]
        assert {row["transactional_id"] for row in rows} == {"etl"}
        assert [len(row["partitions"]) for row in rows] == [3] * 5
        assert [sum(part["records_count"] for part in row["partitions"]) for row in rows] == [20] * 5
        assert [row["ended_by"] for row in rows] == ["client", "client", "client", None, None]
        last = rows[-1]
        found = log.records(["value"], transaction=(last["producer_id"], last["producer_epoch"])).to_table()
        assert found.num_rows == 20
        assert [fault.message for fault in log.verify() if fault.error == "torn_transaction"] == []


def test_an_unreadable_coordinator_is_a_fault(tmp_path: Path):
    shutil.copytree(GOLDEN / "transactions_tv0" / "log", tmp_path / "log")
    path = tmp_path / "log" / "__transaction_state-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)
    log = kraftlog.open(tmp_path / "log")
    with pytest.raises(kraftlog.CorruptRecordError):
        log.transactions()
    faults: list[Any] = []
    assert log.transactions(strict=False, faults=faults).num_rows > 10
    assert {(fault.topic, fault.segment_base_offset) for fault in faults} == {("__transaction_state", 0)}


@pytest.mark.parametrize("raised", [0, 1], ids=["epoch of the data", "version 2"])
@pytest.mark.parametrize("kinds", [("COMMIT", "ABORT"), ("ABORT", "COMMIT")])
def test_a_second_marker_without_data_that_says_the_opposite(tmp_path: Path, kinds: tuple[str, str], raised: int):
    """A leader accepts a marker without an open transaction; it ends nothing, and is of no transaction with records."""
    states = {"COMMIT": "committed", "ABORT": "aborted"}
    for number in (0, 1):
        data = kraftlog.encode(
            pa.table({"value": ["x"]}),
            base_offset=0,
            timestamp_ms=1000,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
            partition_leader_epoch=0,
        ).to_pybytes()
        markers = [
            kraftlog.encode_marker(
                kind, base_offset=1 + at, timestamp_ms=1001 + at, producer_id=7, producer_epoch=raised
            ).to_pybytes()
            for at, kind in enumerate(kinds if number else kinds[:1])
        ]
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(b"".join([data, *markers]))
    log = kraftlog.open(tmp_path)
    assert [fault.message for fault in log.verify()] == []
    rows = log.transactions(["state", "partitions"]).to_pylist()
    parts = {(part["partition"], part["marker_offset"]): row["state"] for row in rows for part in row["partitions"]}
    first, second = (states[kind] for kind in kinds)
    assert parts == {(0, 1): first, (1, 1): first, (1, 2): second}
    shown = log.records(["partition"], isolation_level="read_committed").to_table()["partition"].to_pylist()
    assert shown == ([0, 1] if first == "committed" else [])
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [2, 3]


def test_a_batch_that_a_coordinator_is_writing_is_no_note(tmp_path: Path):
    """Of a cut, and of the transactions of the log: its topic is read beside the files that they show."""
    log = kraftlog.open(shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log"))
    columns = ["transactional_id", "producer_id", "producer_epoch", "state", "input_offsets"]
    rows, cut = log.transactions(columns), log.cut("end")
    for folder in ("__transaction_state-0", "__consumer_offsets-0"):
        with (tmp_path / "log" / folder / f"{0:020d}.log").open("ab") as file:
            file.write((GOLDEN / "transactions" / "log" / folder / f"{0:020d}.log").read_bytes()[:40])
    log = kraftlog.open(tmp_path / "log")
    stream = log.scan("transactions", columns)
    assert (stream.to_table(), stream.notes, stream.faults) == (rows, [], [])
    assert log.cut("end") == cut
    row = next(row for row in rows.to_pylist() if row["input_offsets"])
    one = log.scan("records", ["offset"], transaction=(row["producer_id"], row["producer_epoch"]))
    assert one.to_table().num_rows > 0
    assert len(one.notes) == len(set(one.notes))
