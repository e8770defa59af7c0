"""The table ``transactions`` of logs that a real broker wrote, with transaction version 2 and then with version 1.

Transactions end in every way that there is. What the producers were told to do, Kafka's consumer, kafka-dump-log and
Admin say what has to be in the table.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jvm import Jvm, Line
from kafka_broker import Broker
from kafka_tool import run_tool

import kraftlog
from segments_of_transactions import with_other_marker

NOT_AUDITED = "transactions commit offsets of records that nobody has read"
TOOLS = "org.apache.kafka.tools"
OFFSETS = "__consumer_offsets"
TOPICS = {"orders": 2, "payments": 1}
ORDERS_0, ORDERS_1, PAYMENTS = ("orders", 0), ("orders", 1), ("payments", 0)
OFFSETS_0 = (OFFSETS, 0)
GROUP = "group"
CHECK_EVERY = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
TIMEOUT_MS = 15_000  # a busy machine takes seconds for the first sends
LIMIT = 60.0
VERSIONS = (2, 1)  # 2 is what a new cluster has

Place = tuple[str, int]


class Expected(NamedTuple):
    """A transaction as the producers were told to make it.

    Attributes
    ----------
    name : str
        Of the transactional id, which has the transaction version behind it.
    counts : dict
        How many records it has in each partition.
    step : str
        What its producer does at its end.
    state : str
    ended_by : dict
        By transaction version.
    identified_by : dict
        By transaction version: under version 1 only another producer or the coordinator raises the epoch.
    """

    name: str
    counts: dict[Place, int]
    step: str
    state: str
    ended_by: dict[int, str | None]
    identified_by: dict[int, str]


BY_CLIENT: dict[int, str | None] = dict.fromkeys(VERSIONS, "client")
NO_END: dict[int, str | None] = dict.fromkeys(VERSIONS)
FENCED: dict[int, str | None] = {2: None, 1: "newer producer"}
RAISED = dict.fromkeys(VERSIONS, "marker_epoch")
KEPT = {2: "marker_epoch", 1: "transaction_state"}
PROGRAM = [
    # it times out while the others go on
    Expected("slow", {ORDERS_0: 1, ORDERS_1: 2}, "leave", "aborted", dict.fromkeys(VERSIONS, "timeout"), RAISED),
    Expected("client", {ORDERS_0: 3, ORDERS_1: 1, PAYMENTS: 2, OFFSETS_0: 2}, "commit", "committed", BY_CLIENT, KEPT),
    Expected("client", {ORDERS_0: 1, PAYMENTS: 4, OFFSETS_0: 1}, "abort", "aborted", BY_CLIENT, KEPT),
    Expected("client", {ORDERS_1: 2}, "commit", "committed", BY_CLIENT, KEPT),
    # where no transaction follows version 2 does not tell an abort by the client from one by a newer producer
    Expected("client", {ORDERS_0: 1}, "abort", "aborted", {2: None, 1: "client"}, KEPT),
    Expected("fenced", {ORDERS_0: 2, ORDERS_1: 1, OFFSETS_0: 1}, "leave", "aborted", FENCED, RAISED),
    Expected("fenced", {ORDERS_0: 1, PAYMENTS: 1}, "commit", "committed", BY_CLIENT, KEPT),
    # Admin.forceTerminateTransaction fences as a newer producer does
    Expected("terminated", {ORDERS_1: 3, PAYMENTS: 1}, "leave", "aborted", FENCED, RAISED),
    # Admin.abortTransaction writes markers, and the coordinator does not know of it
    Expected("admin", {ORDERS_0: 2, PAYMENTS: 3}, "leave", "aborted", {2: "admin", 1: None}, KEPT),
    Expected("left", {ORDERS_0: 1, ORDERS_1: 1, OFFSETS_0: 1}, "leave", "open", NO_END, KEPT),
]


class Run(NamedTuple):
    """What Kafka has left, and what it says of it."""

    log_dir: Path
    rows: dict[tuple[str, int], Line]
    first_keys: dict[tuple[str, int, int], str]
    dumped: list[Line]
    producers: list[Line]
    transactional_ids: dict[str, Line]


def transactions(version: int) -> dict[tuple[str, int], Expected]:
    """Return the transactions by transactional id and number."""
    found: dict[tuple[str, int], Expected] = {}
    numbers: Counter[str] = Counter()
    for one in PROGRAM:
        of = f"{one.name}-{version}"
        found[of, numbers[of]] = one
        numbers[of] += 1
    return found


def program(version: int) -> Iterator[Line]:
    """Yield the lines that Produce.java takes; a record's key names its transaction."""
    has_producer: set[str] = set()
    for (of, number), one in transactions(version).items():
        if of not in has_producer:
            timeout = TIMEOUT_MS if one.name == "slow" else 600_000
            yield {"by": of, "producer": {"transactional.id": of, "transaction.timeout.ms": str(timeout)}}
        has_producer.add(of)
        yield {"by": of, "transaction": "begin"}
        for (topic, partition), count in one.counts.items():
            for each in range(count):
                if topic == OFFSETS:
                    offset = {"topic": "orders", "partition": each, "offset": 10 * number + each, "metadata": ""}
                    yield {"by": of, "group": GROUP, **offset}
                else:
                    record = {"timestamp": 1_700_000_000_000, "value": b"value".hex(), "headers": []}
                    key = f"{of} {number}".encode().hex()
                    yield {"by": of, "topic": topic, "partition": partition, "key": key, **record}
        yield {"by": of, "transaction": one.step}
        if one.step == "leave":
            has_producer.discard(of)


def end_by_admin(java: Jvm, broker: Broker, version: int) -> None:
    """Force one transaction to end, and write the markers of another; the log that grows says where that begins."""
    server = ["--bootstrap-server", broker.bootstrap_servers]
    producers = kraftlog.open(broker.log_dir, topics=[*TOPICS]).producers().to_pylist()
    producer_id = ids_of(broker)[f"admin-{version}"]["producer_id"]
    opened = [
        (one["topic"], str(one["partition"]), str(one["current_transaction_first_offset"]))
        for one in producers
        if one["producer_id"] == producer_id
    ]
    aborts = [
        [*server, "abort", "--topic", topic, "--partition", partition, "--start-offset", first]
        for topic, partition, first in opened
    ]
    forced = [*server, "forceTerminateTransaction", "--transactionalId", f"terminated-{version}"]
    assert len(aborts) == 2
    for told in run_tool(java, f"{TOOLS}.TransactionsCommand", [*aborts, forced]):
        assert told.code == 0, told


def wait_for_ends(broker: Broker, version: int) -> None:
    """Wait until all transactions have ended that the coordinator will end."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        ids = ids_of(broker)
        states = {name: ids[f"{name}-{version}"]["status"] for name in ("slow", "terminated")}
        if states == {"slow": "CompleteAbort", "terminated": "Empty"}:  # the admin's client is a new producer
            return
        time.sleep(0.2)
    raise TimeoutError(str(states))


def ids_of(broker: Broker) -> dict[str, Line]:
    """Return the transactional ids of the log that grows."""
    rows = kraftlog.open(broker.log_dir).transactional_ids().to_pylist()
    return {row["transactional_id"]: row for row in rows}


@pytest.fixture(scope="module")
def run(java: Jvm) -> Iterator[Run]:
    """Let producers write with each transaction version, ask Kafka of everything, and read what it has left."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        broker = Broker(java, Path(home), CHECK_EVERY)
        with broker:
            broker.create({"name": name, "partitions": count, "configs": {}} for name, count in TOPICS.items())
            for version in VERSIONS:
                if version != VERSIONS[0]:
                    to = ["--bootstrap-server", broker.bootstrap_servers, "downgrade"]
                    (told,) = run_tool(
                        java, f"{TOOLS}.FeatureCommand", [[*to, "--feature", f"transaction.version={version}"]]
                    )
                    assert told.code == 0, told
                broker.produce(program(version))
                end_by_admin(java, broker, version)
                wait_for_ends(broker, version)
            consumed = broker.consume(TOPICS)
            producers, ids = broker.transactions(TOPICS)
        yield Run(
            broker.log_dir,
            table_rows(broker.log_dir),
            {(one["topic"], one["partition"], one["offset"]): bytes.fromhex(one["key"]).decode() for one in consumed},
            dumped(java, broker.log_dir),
            producers,
            {one["transactional_id"]: one for one in ids},
        )


def table_rows(log_dir: Path) -> dict[tuple[str, int], Line]:
    """Return the rows by transactional id, and the number of each among those of its id."""
    rows, numbers = {}, Counter[str]()
    for row in kraftlog.open(log_dir).transactions().to_pylist():
        of = str(row["transactional_id"])
        rows[of, numbers[of]] = row
        numbers[of] += 1
    return rows


def dumped(java: Jvm, log_dir: Path) -> list[Line]:
    """Return what each producer has in each partition up to a marker, from kafka-dump-log."""
    places = [*((name, at) for name, count in TOPICS.items() for at in range(count)), OFFSETS_0]
    logs = [sorted((log_dir / f"{topic}-{partition}").glob("*.log")) for topic, partition in places]
    runs = [["--print-data-log", "--files", ",".join(str(path) for path in some)] for some in logs]
    found = []
    for place, told in zip(places, run_tool(java, f"{TOOLS}.DumpLogSegments", runs), strict=True):
        assert told.code == 0, told
        started: dict[str, list[int]] = defaultdict(list)
        is_transactional = is_control = False
        producer = ""
        for line in told.output.splitlines():
            if line.startswith("baseOffset:"):
                is_transactional = "isTransactional: true" in line
                is_control = "isControl: true" in line
                producer = re.findall(r"producerId: (-?\d+)", line)[0]
            elif line.startswith("| offset:"):
                offset = int(line.split()[2])
                if is_control:
                    ends = {"COMMIT": "committed", "ABORT": "aborted"}
                    state = ends[re.findall(r"endTxnMarker: (\w+)", line)[0]]
                    found.append(_part(place, producer, started.pop(producer, []), offset, state))
                elif is_transactional:
                    started[producer].append(offset)
        found += [_part(place, producer, offsets, None, "open") for producer, offsets in started.items()]
    return found


def _part(place: Place, producer: str, offsets: list[int], marker_offset: int | None, state: str) -> Line:
    return {
        "producer_id": int(producer),
        "topic": place[0],
        "partition": place[1],
        "first_offset": min(offsets, default=None),
        "marker_offset": marker_offset,
        "state": state,
        "records_count": len(offsets),
    }


def test_each_transaction(run: Run) -> None:
    """A row each, with its end and how it was recognized."""
    found = {
        of: (
            row["state"],
            row["ended_by"],
            row["identified_by"],
            {(part["topic"], part["partition"]): part["records_count"] for part in row["partitions"]},
        )
        for of, row in run.rows.items()
    }
    expected = {
        of: (one.state, one.ended_by[version], one.identified_by[version], one.counts)
        for version in VERSIONS
        for of, one in transactions(version).items()
    }
    assert found == expected


def test_what_each_partition_has(run: Run) -> None:
    """The offsets of the first record and of the marker, and how many records, as kafka-dump-log shows them."""
    parts = [{"producer_id": row["producer_id"], **part} for row in run.rows.values() for part in row["partitions"]]
    assert sorted(parts, key=str) == sorted(run.dumped, key=str)


def test_first_records(run: Run) -> None:
    """The record at the first offset is one that its producer sent in this transaction."""
    for (of, number), row in run.rows.items():
        for part in row["partitions"]:
            if part["topic"] != OFFSETS and part["first_offset"] is not None:
                assert run.first_keys[part["topic"], part["partition"], part["first_offset"]] == f"{of} {number}"


def test_input_offsets(run: Run) -> None:
    """What sendOffsetsToTransaction was told."""
    for version in VERSIONS:
        for (of, number), one in transactions(version).items():
            expected = [
                {"group": GROUP, "topic": "orders", "partition": each, "offset": 10 * number + each}
                for each in range(one.counts.get(OFFSETS_0, 0))
            ]
            assert run.rows[of, number]["input_offsets"] == expected


def test_the_coordinator_says_the_same(run: Run) -> None:
    """Of the last transaction of each id, and where its partitions have it open."""
    first = "current_transaction_first_offset"
    opened = {
        (one["producer_id"], one["topic"], one["partition"], one[first])
        for one in run.producers
        if one[first] is not None
    }
    found = {
        (row["producer_id"], part["topic"], part["partition"], part["first_offset"])
        for row in run.rows.values()
        for part in row["partitions"]
        if part["state"] == "open" and part["topic"] != OFFSETS
    }
    assert found == opened
    last = {of: row for (of, _), row in run.rows.items()}
    assert last.keys() == run.transactional_ids.keys()
    for of, row in last.items():
        told = run.transactional_ids[of]
        # the epoch of the markers is that of the producer then; Empty is what a newer producer has begun with
        raised = {"Ongoing": int(of.endswith("-2")), "Empty": -1}.get(told["state"], 0)
        assert (row["producer_id"], row["producer_epoch"]) == (told["producer_id"], told["producer_epoch"] + raised)
        partitions = [[part["topic"], part["partition"]] for part in row["partitions"]]
        assert sorted(told["partitions"]) == (partitions if told["state"] == "Ongoing" else [])
        if told["state"].startswith("Complete"):
            assert row["state"] == {"CompleteCommit": "committed", "CompleteAbort": "aborted"}[told["state"]]


def test_nothing_is_wrong(run: Run) -> None:
    """Verify finds no fault, nor a torn transaction."""
    assert list(kraftlog.open(run.log_dir).verify()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marker_that_says_the_opposite(run: Run, tmp_path: Path, version: int) -> None:
    """In one of several partitions: verify names it, and what was expected."""
    log = Path(shutil.copytree(run.log_dir, tmp_path / "log"))
    row = run.rows[f"client-{version}", 1]
    offset = with_other_marker(log, "payments-0", row["producer_id"])
    assert offset in [part["marker_offset"] for part in row["partitions"] if part["topic"] == "payments"]
    (fault,) = [fault for fault in kraftlog.open(log).verify() if fault.error == "torn_transaction"]
    name = f"{row['producer_id']}:{row['producer_epoch']} of transactional id client-{version}"
    what = f"expected ABORT, as its coordinator decided; found COMMIT at offset {offset}"
    assert fault.message == f"payments-0: transaction {name} is torn: {what}"
