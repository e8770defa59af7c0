"""Transactions over all their partitions, against a twin that knows what belongs together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transaction_histories import (
    PARTITIONS,
    STEPS,
    VERSION_CHANGES,
    History,
    TrueTransaction,
    changed,
    without_data,
    without_marker,
)

from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    CoordinatorLog,
    Part,
    StateRecord,
    Transaction,
    joined,
)

VERSIONS = st.tuples(st.sampled_from([0, 2]), st.sampled_from([0, 1, 2]))


def transactions_of(
    logs: dict[TopicPartition, list[Part]], records: Iterable[StateRecord], *, whole: Iterable[TopicPartition] = ()
) -> list[Transaction]:
    """Join what logs and coordinator have; the logs of ``whole`` lack nothing."""
    coordinator, whole = CoordinatorLog(), frozenset(whole)
    for record in records:
        coordinator.add(record)
    parts, known = defaultdict(list), defaultdict(list)
    for log in logs.values():
        for part in log:
            parts[part.producer_id].append(part)
    for one in coordinator.transactions:
        known[one.producer_id].append(one)
    return [
        transaction
        for producer_id in sorted(parts.keys() | known.keys())
        for transaction in joined(producer_id, parts[producer_id], known[producer_id], logs, lambda of, _: of in whole)
    ]


def held(transaction: Transaction) -> frozenset[tuple[TopicPartition, int, int]]:
    """Return what a transaction has in logs, by which parts are told apart."""
    parts = (part for part in transaction.parts if part.has_ended or part.records_count)
    return frozenset((part.of, part.first_offset, part.marker_offset) for part in parts)


def true_parts(true: TrueTransaction) -> frozenset[tuple[TopicPartition, int, int]]:
    return frozenset((of, part.first_offset, part.marker_offset) for of, part in true.parts.items())


@settings(max_examples=60, deadline=None)
@given(STEPS, VERSIONS, VERSION_CHANGES)
def test_whole_logs(steps, versions, changes):
    """With all records each transaction is one row, and how it ended is what happened."""
    history = History(steps, versions, changes)
    rows = transactions_of(history.logs, history.records, whole=PARTITIONS)
    assert {held(row) for row in rows} == {true_parts(true) for true in history.truth}
    assert len(rows) == len(history.truth)
    by_parts = {held(row): row for row in rows}
    for true in history.truth:
        row = by_parts[true_parts(true)]
        assert (row.transactional_id, row.producer_epoch, row.state) == (
            true.transactional_id,
            true.marker_epoch,
            true.state,
        )
        is_raised = true.marker_epoch > next(iter(true.parts.values())).data_epoch
        assert row.identified_by == ("marker_epoch" if is_raised else "transaction_state")
        unclear = true.version == 2 and true.ended_by in ("client", "newer producer")
        assert row.ended_by in ((true.ended_by, None) if unclear and true.state == "aborted" else (true.ended_by,))


@settings(max_examples=60, deadline=None)
@given(STEPS, VERSIONS)
def test_without_a_coordinator(steps, versions):
    """Epochs that are raised join the parts; others stand alone, and say so."""
    history = History(steps, versions)
    rows = transactions_of(history.logs, [])
    expected = set()
    for true in history.truth:
        parts = list(true.parts.values())
        is_raised = parts[0].marker_epoch > parts[0].data_epoch
        expected |= {true_parts(true)} if is_raised else {frozenset([one]) for one in true_parts(true)}
    assert {held(row) for row in rows} == expected
    assert {row.state for row in rows} <= {"committed", "aborted"}
    for row in rows:
        assert row.identified_by == (
            "partition" if row.parts[0].marker_epoch == row.parts[0].data_epoch else "marker_epoch"
        )


@settings(max_examples=150, deadline=None)
@given(STEPS, VERSIONS, VERSION_CHANGES, st.data())
def test_logs_of_which_parts_are_gone(steps, versions, changes, data):
    """Retention, compaction and compacted coordinators tear nothing and join nothing that does not belong together."""
    history = History(steps, versions, changes)
    logs = {}
    for of, log in history.logs.items():
        kept = log[data.draw(st.integers(0, len(log))) :]
        cleaned = data.draw(st.integers(0, len(kept)))
        logs[of] = [without_data(part) for part in kept[:cleaned]] + kept[cleaned:]
    given_logs = {of: log for of, log in logs.items() if of.partition != data.draw(st.integers(0, len(PARTITIONS)))}
    records = history.compacted(data.draw(st.integers(0, len(history.records))))
    rows = transactions_of(given_logs, records)
    of_marker = {
        (of, part.marker_offset): number for number, true in enumerate(history.truth) for of, part in true.parts.items()
    }
    seen = set()
    for row in rows:
        numbers = {of_marker[part.of, part.marker_offset] for part in row.parts if part.has_ended}
        assert len(numbers) <= 1
        if numbers:
            (number,) = numbers
            true = history.truth[number]
            assert row.state == true.state
            assert row.transactional_id in (None, true.transactional_id)
            assert {part.of for part in row.parts} <= true.parts.keys()
            assert row.ended_by in (true.ended_by, None)
        seen |= {(part.of, part.marker_offset) for part in row.parts if part.has_ended}
    assert seen == {(of, part.marker_offset) for of, log in given_logs.items() for part in log}


@settings(max_examples=300, deadline=None)
@given(STEPS, VERSIONS, VERSION_CHANGES, st.randoms(use_true_random=False))
def test_cleaned_logs_tear_nothing(steps, versions, changes, draw):
    """Data is gone, markers are written twice, and the coordinators' log is compacted."""
    history = History(steps, versions, changes)
    logs: dict[TopicPartition, list[Part]] = {}
    for of, log in history.logs.items():
        logs[of] = []
        for part in log:
            kept = without_data(part) if draw.random() < 0.4 else part
            logs[of] += [kept, *([without_data(part)] if draw.random() < 0.1 else [])]
    rows = transactions_of(logs, history.compacted(draw.choice([0, 0, draw.randint(0, len(history.records))])))
    states = {(of, part.marker_offset): true.state for true in history.truth for of, part in true.parts.items()}
    for row in rows:
        assert row.state != "torn"
        assert {states[part.of, part.marker_offset] for part in row.parts if part.has_ended} <= {row.state}


@settings(max_examples=100, deadline=None)
@given(STEPS, VERSIONS, st.data())
def test_an_older_copy_of_the_coordinator(steps, versions, data):
    """Partitions go on where the coordinator's log ends: nothing is torn, and nothing is joined that is not known."""
    history = History(steps, versions)
    records = history.records[: data.draw(st.integers(0, len(history.records)))]
    rows = transactions_of(history.logs, records, whole=PARTITIONS)
    for row in rows:
        trues = [true for true in history.truth if held(row) & true_parts(true)]
        assert len(trues) <= 1
        for true in trues:
            assert row.state in (true.state, "open")
            assert row.transactional_id in (None, true.transactional_id)
            assert row.ended_by in (true.ended_by, None)
    assert frozenset().union(*map(held, rows)) == frozenset().union(*map(true_parts, history.truth))


def test_an_abort_that_a_client_goes_on_from():
    """Under version 2 the record of the next transaction shows that no newer producer has begun."""
    history = History([(0, frozenset([0]), "abort"), (0, frozenset([0]), "abort")], (2, 0))
    first, second = transactions_of(history.logs, history.records)
    assert (first.ended_by, second.ended_by) == ("client", None)


def test_only_the_last_record_is_left():
    """Of a compacted log it does not list partitions: markers between its two times are those of the transaction."""
    history = History([(0, frozenset([0, 1]), "commit"), (0, frozenset([0, 2]), "commit")], (0, 0))
    rows = transactions_of(history.logs, history.compacted(len(history.records)))
    (last,) = [row for row in rows if row.transactional_id is not None]
    assert held(last) == true_parts(history.truth[1])
    assert [row.identified_by for row in rows if row is not last] == ["partition"] * 2


def test_an_open_part_that_the_coordinator_does_not_list():
    """It has the epoch of a transaction that is complete: it hangs, and tears nothing."""
    history = History([(0, frozenset([0]), "commit")], (2, 0))
    late = Part(PARTITIONS[1], 0, 0, -1, "open", 5, 5, -1, 1, 30)
    rows = transactions_of(history.logs | {PARTITIONS[1]: [late]}, history.records)
    assert [(row.state, row.transactional_id) for row in rows if held(row)] == [("open", None), ("committed", "tx-0")]


@settings(max_examples=100, deadline=None)
@given(STEPS, VERSIONS, VERSION_CHANGES, st.data())
def test_another_marker_tears(steps, versions, changes, data):
    """A marker that says the opposite is found where the coordinator, or the marker of another partition, tells."""
    history = History(steps, versions, changes)
    number = data.draw(st.integers(0, len(history.truth) - 1))
    true = history.truth[number]
    of = data.draw(st.sampled_from(sorted(true.parts)))
    opposite = "aborted" if true.state == "committed" else "committed"
    logs = {
        one: [changed(part, state=opposite) if part == true.parts[of] else part for part in log]
        for one, log in history.logs.items()
    }
    has_coordinator = data.draw(st.booleans())
    rows = transactions_of(logs, history.records if has_coordinator else [], whole=PARTITIONS)
    torn = [row for row in rows if row.state == "torn"]
    is_raised = true.parts[of].marker_epoch > true.parts[of].data_epoch
    if not (has_coordinator or (is_raised and len(true.parts) > 1)):
        assert torn == []
        return
    (row,) = torn
    assert held(row) == true_parts(true)
    part, what = row.contradiction()
    if has_coordinator:
        assert part.of == of
        assert what == (
            f"expected {'COMMIT' if true.state == 'committed' else 'ABORT'}, as its coordinator decided; "
            f"found {'COMMIT' if true.state == 'aborted' else 'ABORT'} at offset {part.marker_offset}"
        )


@settings(max_examples=100, deadline=None)
@given(STEPS, VERSIONS, VERSION_CHANGES, st.data())
def test_a_marker_that_is_gone(steps, versions, changes, data):
    """The last marker of a log is cut off: where the log goes on behind a transaction that completed, it is torn."""
    history = History(steps, versions, changes)
    of = data.draw(st.sampled_from([one for one, log in history.logs.items() if log]))
    last = history.logs[of][-1]
    true = next(one for one in history.truth if one.parts.get(of) == last)
    logs = history.logs | {of: [*history.logs[of][:-1], without_marker(last)]}
    case = data.draw(st.sampled_from(["complete", "older copy", "prepared", "none"]))
    records = history.records
    if case == "prepared":
        records = [one for one in records if one.timestamp < last.marker_timestamp]
    whole_logs = set(PARTITIONS) - ({of} if case == "older copy" else set())
    rows = transactions_of(logs, [] if case == "none" else records, whole=whole_logs)
    state = "missing" if case == "complete" else "open"
    (row,) = [row for row in rows if any(part.of == of and part.state == state for part in row.parts)]
    assert row.state == ("torn" if case == "complete" else "open")
    if case == "complete":
        assert row.contradiction()[1].endswith("as its coordinator completed; found no marker")
    if case != "none":
        assert row.transactional_id == true.transactional_id
    whole = {one for one, part in true.parts.items() if one != of}
    if case == "complete":
        assert {part.of for part in row.parts if part.has_ended} == whole


@settings(max_examples=150, deadline=None)
@given(
    STEPS, VERSIONS, VERSION_CHANGES, st.lists(st.integers(-20, 20), min_size=len(PARTITIONS), max_size=len(PARTITIONS))
)
def test_clocks_that_differ_tear_nothing(steps, versions, changes, ahead_ms):
    """The time of a marker is that of the partition's leader, the time of a decision that of the coordinator."""
    history = History(steps, versions, changes)
    logs = {
        of: [changed(part, marker_timestamp=part.marker_timestamp + ms) for part in history.logs[of]]
        for of, ms in zip(PARTITIONS, ahead_ms, strict=True)
    }
    rows = transactions_of(logs, history.records, whole=PARTITIONS)
    assert "torn" not in {row.state for row in rows}
    assert frozenset().union(*map(held, rows)) == frozenset().union(*map(true_parts, history.truth))


@pytest.mark.parametrize("ahead_ms", [-700, -3, 3, 9_000])
def test_clocks_that_differ_join_the_same(ahead_ms: int):
    history = History([(0, frozenset([0, 1]), end) for end in ("commit", "abort", "abort", "commit", "abort")], (0, 0))
    first, second = PARTITIONS[:2]
    logs = {
        first: history.logs[first],
        second: [changed(one, marker_timestamp=one.marker_timestamp + ahead_ms) for one in history.logs[second]],
    }
    rows = transactions_of(logs, history.records, whole=PARTITIONS)
    assert {held(row) for row in rows} == {true_parts(true) for true in history.truth}


@pytest.mark.parametrize("ahead_ms", [-60, -12, 12, 60])
def test_clocks_that_differ_by_several_transactions_tear_nothing(ahead_ms: int):
    """Markers of a busy producer seem to be those of neighbours, far from the transaction that seems to have none."""
    history = History([(0, frozenset([0, 1]), "commit")] * 2000, (0, 0))
    second = PARTITIONS[1]
    late = [changed(one, marker_timestamp=one.marker_timestamp + ahead_ms) for one in history.logs[second]]
    rows = transactions_of(history.logs | {second: late}, history.records, whole=PARTITIONS)
    assert "torn" not in {row.state for row in rows}


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_partition_that_has_nothing(version: int, is_whole: bool):
    """Only a log that lacks nothing shows that a marker was never written; one that is not given shows nothing."""
    history = History([(0, frozenset([0, 1, 2]), "commit")], (version, 0))
    first, second, third = PARTITIONS
    logs = {first: history.logs[first], second: []}
    (row,) = transactions_of(logs, history.records, whole=[second] if is_whole else [])
    assert [part.state for part in row.parts] == ["committed", "missing" if is_whole else None, None]
    assert row.state == ("torn" if is_whole else "committed")
    assert row.parts[2].of == third


def test_epochs_of_several_kinds():
    """A producer that changes to transaction version 2 has both kinds of markers at one epoch."""
    first, second = PARTITIONS[:2]
    old = [Part(of, 1, 0, 0, "committed", 0, 0, 1, 1, 10, 20) for of in (first, second)]
    new = [Part(of, 1, 0, 1, "committed", 2, 2, 3, 1, 30, 40) for of in (first, second)]
    rows = transactions_of({first: [old[0], new[0]], second: [old[1], new[1]]}, [])
    assert [(row.producer_epoch, row.identified_by, len(row.parts)) for row in rows] == [
        (0, "partition", 1),
        (0, "partition", 1),
        (1, "marker_epoch", 2),
    ]


def test_open_parts_of_version_2():
    """Epochs that rise at COMMIT show the version, so that open parts of one epoch are one transaction."""
    first, second = PARTITIONS[:2]
    ended = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    opened = [Part(of, 1, 1, -1, "open", 2, 2, -1, 1, 30) for of in (first, second)]
    one, other = transactions_of({first: [ended, opened[0]], second: [opened[1]]}, [])
    assert (one.state, other.state, other.producer_epoch, len(other.parts)) == ("committed", "open", 2, 2)
    alone = transactions_of({first: [opened[0]], second: [opened[1]]}, [])
    assert [(row.state, row.identified_by) for row in alone] == [("open", "partition")] * 2


def test_an_administrator_aborts_a_part():
    """WriteTxnMarkers of an administrator has the epoch of the data: under version 2 no coordinator writes that."""
    first, second = PARTITIONS[:2]
    before = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    aborted = [Part(of, 1, 1, 1, "aborted", 2, 2, 3, 1, 30, 40) for of in (first, second)]
    rows = transactions_of({first: [before, aborted[0]], second: [aborted[1]]}, [])
    assert [(row.state, row.ended_by, len(row.parts)) for row in rows] == [
        ("committed", "client", 1),
        ("aborted", "admin", 2),
    ]
    committed = Part(second, 1, 1, 2, "committed", 2, 2, 3, 1, 30, 40)
    torn = transactions_of({first: [before, aborted[0]], second: [committed]}, [])[1]
    assert torn.state == "torn"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("ends", [0, 1])
def test_an_administrator_aborts_what_a_coordinator_has_under_way(version: int, ends: int):
    """The coordinator knows nothing of such markers; under version 1 it writes those with the same epoch itself."""
    first, second = PARTITIONS[:2]
    both = frozenset([first, second])
    rises = version - 1  # at each end
    records: list[StateRecord] = []
    logs: dict[TopicPartition, list[Part]] = {first: [], second: []}
    for number in range(ends):
        at, epoch = 100 * number, number * rises
        records += [
            StateRecord("tx", ONGOING, 1, 1, epoch, version, both, at, at, 1000, at),
            StateRecord("tx", PREPARE_COMMIT, 1, 1, epoch + rises, version, both, at + 20, at, 1000, at + 20),
            StateRecord("tx", COMPLETE_COMMIT, 1, 1, epoch + rises, version, frozenset(), at + 20, at, 1000, at + 30),
        ]
        for of in both:
            logs[of].append(Part(of, 1, epoch, epoch + rises, "committed", 0, 0, 1, 1, at + 1, at + 25))
    at, epoch = 100 * ends, ends * rises
    records.append(StateRecord("tx", ONGOING, 1, 1, epoch, version, both, at, at, 1000, at))
    for of in both:
        logs[of].append(Part(of, 1, epoch, epoch, "aborted", 2, 2, 3, 1, at + 1, at + 40))
    *before, row = transactions_of(logs, records)
    assert [one.state for one in before] == ["committed"] * ends
    identified_by = "marker_epoch" if version == 2 else "transaction_state"
    assert (row.state, row.identified_by, len(row.parts)) == ("aborted", identified_by, 2)
    assert (row.transactional_id, row.ended_by) == ("tx", "admin" if version == 2 else None)


def test_an_earlier_marker_is_no_administrators():
    """A producer changes to version 2; of its transaction before only the marker is left, at the same epoch."""
    first = PARTITIONS[0]
    before = Part(first, 1, 0, 0, "aborted", 0, 0, 1, 1, 10, 20)
    ongoing = StateRecord("tx", ONGOING, 1, 1, 0, 2, frozenset([first]), 30, 30, 1000, 31)
    opened = Part(first, 1, 0, -1, "open", 2, 2, -1, 1, 32)
    alone, row = transactions_of({first: [before, opened]}, [ongoing])
    assert (alone.state, alone.identified_by, alone.transactional_id) == ("aborted", "partition", None)
    assert (row.state, row.transactional_id, row.parts) == ("open", "tx", [opened])


def test_markers_that_are_written_twice():
    """A coordinator that moved may write a marker again; one that says the opposite contradicts its record."""
    first, second = PARTITIONS[:2]
    part = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    again = Part(first, 1, -1, 1, "committed", marker_offset=2, marker_timestamp=30)
    (row,) = transactions_of({first: [part, again], second: []}, [])
    assert [one.marker_offset for one in row.parts] == [1]
    opposite = {first: [part, changed(again, state="aborted")], second: []}
    rows = transactions_of(opposite, [])
    assert [(row.state, row.identified_by) for row in rows] == [("committed", "marker_epoch"), ("aborted", "partition")]
    prepared = StateRecord("tx", PREPARE_COMMIT, 1, 1, 1, 2, frozenset([first]), 15, 9, 1000, 16)
    (row,) = transactions_of(opposite, [prepared])
    assert row.state == "torn"


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_cleaned", [False, True])
def test_markers_of_version_1_that_are_written_twice(count: int, is_cleaned: bool):
    """The first one ends the records: those that follow, before the transaction is complete, end nothing."""
    history = History([(0, frozenset([0, 1]), "commit")] * 3, (0, 0))
    first = PARTITIONS[0]
    log = []
    for part in history.logs[first]:
        again = without_data(changed(part, marker_offset=part.marker_offset + 100))
        log += [without_data(part) if is_cleaned else part, *[again] * count]
    rows = transactions_of(history.logs | {first: log}, history.records, whole=PARTITIONS)
    assert {held(row) for row in rows} == {
        frozenset((of, -1 if is_cleaned and of == first else at, marker) for of, at, marker in true_parts(true))
        for true in history.truth
    }
    assert {row.state for row in rows} == {"committed"}


def test_a_second_marker_that_says_the_opposite_tears_a_transaction_of_version_1():
    history = History([(0, frozenset([0]), "commit")], (0, 0))
    first = PARTITIONS[0]
    (part,) = history.logs[first]
    again = without_data(changed(part, state="aborted", marker_offset=part.marker_offset + 1))
    (row,) = (row for row in transactions_of({first: [part, again]}, history.records) if row.state == "torn")
    assert row.contradiction()[1].endswith(f"found ABORT at offset {again.marker_offset}")


def test_records_before_a_marker_are_those_of_one_transaction():
    """Two markers have the time of one transaction, as clocks differ: those with records are not written twice."""
    history = History([(0, frozenset([0]), "commit")] * 2, (0, 0))
    first = PARTITIONS[0]
    one, other = history.logs[first]
    log = [changed(one, marker_timestamp=other.marker_timestamp), other]
    last = [record for record in history.records if record.start == history.records[-1].start]
    assert {held(row) for row in transactions_of({first: log}, last)} == {true_parts(true) for true in history.truth}


STRETCHES = st.lists(
    st.tuples(
        st.sampled_from(["raised", "kept", "marker"]), st.sampled_from(["committed", "aborted"]), st.integers(0, 2)
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STRETCHES, min_size=len(PARTITIONS), max_size=len(PARTITIONS)), st.booleans())
def test_epochs_that_several_transactions_have(stretches, is_one):
    """A log that no coordinator wrote: an epoch joins parts where it ends one stretch of data in each partition."""
    logs: dict[TopicPartition, list[Part]] = {}
    for of, those in zip(PARTITIONS[: 1 if is_one else None], stretches, strict=False):
        logs[of] = log = []
        for number, (kind, state, epoch) in enumerate(those):
            data_epoch = {"raised": epoch - 1, "kept": epoch}.get(kind, -1)
            at = 10 * number
            part = Part(of, 1, data_epoch, epoch, state, at, at + 1, at + 2, 2, at, at + 5)
            log.append(part if data_epoch >= 0 else without_data(part))
    data = [part for log in logs.values() for part in log if part.data_epoch >= 0]
    raised: dict[int, list[Part]] = defaultdict(list)
    for part in data:
        if part.data_epoch < part.marker_epoch:
            raised[part.marker_epoch].append(part)
    own = {epoch: parts for epoch, parts in raised.items() if len({part.of for part in parts}) == len(parts)}
    rows = transactions_of(logs, [])
    of_data = [frozenset(part for part in row.parts if part.data_epoch >= 0) for row in rows]
    assert sorted(part for parts in of_data for part in parts) == sorted(data)
    assert {frozenset(parts) for parts in own.values()} <= {
        frozenset(part for part in parts if part.data_epoch < part.marker_epoch) for parts in of_data
    }
    for row, parts in zip(rows, of_data, strict=True):
        if any(part.data_epoch < part.marker_epoch for part in parts):
            assert (len(parts) == 1 and parts == frozenset(row.parts)) or row.producer_epoch in own
        if len({part.state for part in parts}) == 2:
            assert row.state == "torn"
        if row.state == "torn":
            assert len({part.of for part in row.parts}) == len(row.parts) > 1


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([0, 2]), st.data())
def test_a_repeated_epoch_is_joined_by_the_coordinator(steps, version, data):
    """What ended a second time at an epoch, long before, proves that the epoch is not enough; the records are."""
    history = History([*steps, (0, frozenset([0, 1]), "fence")], (version, version))
    true = data.draw(st.sampled_from([one for one in history.truth if one.producer_id == 0]))
    of = data.draw(st.sampled_from(sorted(true.parts)))
    part = true.parts[of]
    earlier = changed(part, first_offset=-9, last_offset=-8, marker_offset=-7, start_timestamp=1, marker_timestamp=2)
    logs = history.logs | {of: [earlier, *history.logs[of]]}
    rows = transactions_of(logs, history.records, whole=PARTITIONS)
    assert {held(row) for row in rows} == {true_parts(one) for one in history.truth} | {
        frozenset([(of, earlier.first_offset, earlier.marker_offset)])
    }
    assert "torn" not in {row.state for row in rows}
    (row,) = (row for row in rows if held(row) == true_parts(true))
    assert (row.identified_by, row.transactional_id) == ("transaction_state", "tx-0")


@pytest.mark.parametrize("states", [["committed"], ["aborted", "aborted"]])
def test_markers_at_an_epoch_that_stayed(states: list[str]):
    """Version 2, and then 1 again: a marker without data at the last epoch may be of any transaction since."""
    first, second, third = PARTITIONS
    raised = [Part(of, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20) for of in (first, second)]
    kept = [Part(first, 1, 1, 1, state, at, at, at + 1, 1, at, at) for at, state in enumerate(states, 40)]
    marker = without_data(changed(kept[0], of=third, state="aborted", marker_timestamp=30))
    logs = {first: [raised[0], *kept], second: [raised[1]], third: [marker]}
    known = StateRecord("tx", PREPARE_COMMIT, 1, 1, 1, 2, frozenset([first, second]), 15, 9, 1000, 16)
    later = StateRecord("tx", PREPARE_ABORT, 1, 1, 1, 1, frozenset([third]), 29, 25, 1000, 29)
    for records in ([], [known], [known, later]):
        rows = transactions_of(logs, records)
        found = [(row.state, [part.of for part in row.parts]) for row in rows]
        assert found.pop(0) == ("committed", [first, second])
        assert sorted(found) == sorted([("aborted", [third]), *((state, [first]) for state in states)])
        (of_third,) = (row for row in rows if row.parts[0].of == third)
        assert of_third.identified_by == ("transaction_state" if later in records else "partition")
    only_marker = {first: [raised[0], *kept, changed(marker, of=first)], second: [without_data(raised[1])]}
    whole, *alone = transactions_of(only_marker, [known])
    assert (whole.transactional_id, whole.state, [part.of for part in whole.parts]) == (
        "tx",
        "committed",
        [first, second],
    )
    assert [len(row.parts) for row in alone] == [1] * (len(states) + 1)


def test_markers_at_an_epoch_that_ended_twice():
    """Version 2 raises epochs, but of one that ended two stretches of data not even markers without data are joined."""
    first, second, third = PARTITIONS
    before = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    twice = [Part(first, 1, 1, 2, "committed", at, at, at + 1, 1, at, at) for at in (30, 40)]
    marker = without_data(changed(twice[0], of=second))
    rows = transactions_of({first: [before, *twice], second: [marker], third: [changed(marker, of=third)]}, [])
    assert [(row.identified_by, len(row.parts)) for row in rows] == [("marker_epoch", 1), *[("partition", 1)] * 4]


def test_exhausted_epochs():
    """The last epoch ends a transaction, and the record of its completion names the next producer id."""
    first = PARTITIONS[0]
    part = Part(first, 1, 32766, 32767, "committed", 0, 0, 1, 1, 10, 20)
    complete = StateRecord("tx", 4, 2, 1, 0, 2, frozenset(), 15, 9, 1000, 25)
    (row,) = transactions_of({first: [part]}, [complete])
    assert (row.transactional_id, row.producer_id, row.producer_epoch) == ("tx", 1, 32767)


def test_kafka_4_0_0_fences_by_two():
    """KAFKA-19367: InitProducerId raised the epoch, and so did the abort that followed."""
    first = PARTITIONS[0]
    ongoing = StateRecord("tx", 1, 1, 1, 0, 2, frozenset([first]), 10, 10, 1000, 11)
    prepared = StateRecord("tx", 3, 1, 1, 2, 2, frozenset([first]), 20, 10, 1000, 21)
    part = Part(first, 1, 0, 2, "aborted", 0, 0, 1, 1, 10, 22)
    (row,) = transactions_of({first: [part]}, [ongoing, prepared])
    assert (row.producer_epoch, row.ended_by) == (2, "newer producer")


def test_an_open_part_that_came_later():
    """An open part that began when the last known transaction was complete is of one that is not known."""
    first = PARTITIONS[0]
    history = History([(0, frozenset([0]), "commit")], (0, 0))
    later = Part(first, 0, 0, -1, "open", 9, 9, -1, 1, history.now + 5)
    rows = transactions_of({first: [later]}, history.records)
    assert {(row.state, row.identified_by) for row in rows if held(row)} == {("open", "partition")}


def test_version_1_again():
    """Markers that keep an epoch from which on ends raised it are an administrator's, unless one of them commits."""
    first, second = PARTITIONS[:2]
    before = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    kept = Part(first, 1, 1, 1, "committed", 2, 2, 3, 1, 30, 40)
    rows = transactions_of({first: [before, kept], second: [changed(kept, of=second, state="aborted")]}, [])
    assert [(row.state, row.identified_by, len(row.parts)) for row in rows] == [
        ("committed", "marker_epoch", 1),
        ("committed", "partition", 1),
        ("aborted", "partition", 1),
    ]


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_client_of_version_1_that_was_ended_as_by_version_2(is_decided: bool):
    """A coordinator ends the transaction of a client that is gone as version 2 does; later ones keep the epoch."""
    first, second = PARTITIONS[:2]
    both = frozenset([first, second])
    records = [
        StateRecord("tx", ONGOING, 1, -1, 0, 0, both, 10, 10, 1000, 10),
        StateRecord("tx", PREPARE_ABORT, 1, -1, 1, 2, both, 20, 10, 1000, 20),
        StateRecord("tx", COMPLETE_ABORT, 1, -1, 1, 2, frozenset(), 20, 10, 1000, 22),
        StateRecord("tx", EMPTY, 1, 1, 2, 2, frozenset(), 30, -1, 1000, 30),
        StateRecord("tx", ONGOING, 1, 1, 2, 0, both, 40, 40, 1000, 40),
        *([StateRecord("tx", PREPARE_COMMIT, 1, 1, 2, 0, both, 50, 40, 1000, 50)] if is_decided else []),
    ]
    logs = {
        of: [
            Part(of, 1, 0, 1, "aborted", 0, 0, 1, 1, 10, 21),
            Part(of, 1, 2, -1, "open", 2, 2, -1, 1, 41),
        ]
        for of in (first, second)
    }
    rows = transactions_of(logs, records)
    found = [
        (row.producer_epoch, row.transactional_id, row.identified_by, row.decision, len(held(row))) for row in rows
    ]
    assert found == [
        (1, "tx", "marker_epoch", "aborted", 2),
        (2, "tx", "transaction_state", "committed" if is_decided else None, 2),
    ]


class Lowered:
    """Logs after transaction.version was lowered: a commit of version 2, and later transactions at its marker's epoch.

    Attributes
    ----------
    logs : dict of TopicPartition to list of Part
    records : list of StateRecord
    """

    def __init__(self, *later: str, first: str = "commit") -> None:
        steps = [(0, frozenset([0, 1, 2]), end) for end in (first, *later)]
        history = History(steps, (2, 2), {1: 0})
        self.truth, self.logs = history.truth, dict(history.logs)
        self.records = [one for one in history.records if one.transactional_id == "tx-0"]

    def clean(self, number: int) -> None:
        """Remove the data of a partition; its markers stay."""
        of = PARTITIONS[number]
        self.logs[of] = [without_data(part) for part in self.logs[of]]

    def compact(self, transaction: int) -> None:
        """Remove the records of the coordinator up to the last Ongoing of a transaction."""
        decisions = [number for number, one in enumerate(self.records) if one.status in (PREPARE_COMMIT, PREPARE_ABORT)]
        self.records = self.records[decisions[transaction] :]

    def rows(self) -> list[Transaction]:
        return transactions_of(self.logs, self.records)

    def states(self) -> list[tuple[str, int, str | None]]:
        """Return state, number of parts with something, and transactional id of each transaction."""
        return [(row.state, len(held(row)), row.transactional_id) for row in self.rows()]


@pytest.mark.parametrize("cleaned", [(), (2,), (1, 2), (0, 1, 2)])
def test_version_1_has_the_last_epoch_of_version_2(cleaned: tuple[int, ...]):
    """Of the markers of one epoch the time says which are whose, where the data is gone."""
    lowered = Lowered("abort", "commit")
    for number in cleaned:
        lowered.clean(number)
    assert lowered.states() == [("committed", 3, "tx-0"), ("aborted", 3, "tx-0"), ("committed", 3, "tx-0")]


def test_a_coordinator_that_was_copied_before_version_1():
    """A marker that keeps the epoch of its data shows that another one, without data, may be of version 1 as well."""
    lowered = Lowered("abort")
    lowered.clean(2)
    completed = [number for number, one in enumerate(lowered.records) if one.status == COMPLETE_COMMIT]
    lowered.records = lowered.records[: completed[0] + 1]
    states = lowered.states()
    assert states[0] == ("committed", 3, "tx-0")
    assert {state for state, *_ in states[1:]} == {"aborted"}


def test_a_marker_is_not_of_a_transaction_that_another_one_followed():
    """The record that the first one is complete is lost, and so is its marker; the last one is not known."""
    steps = [(0, frozenset([0, 1]), "commit"), (0, frozenset([0]), "commit"), (0, frozenset([1]), "abort")]
    history = History(steps, (0, 0))
    first, second = PARTITIONS[:2]
    decisions = [one for one in history.records if one.status in (PREPARE_COMMIT, COMPLETE_COMMIT)]
    records = [decisions[0], *(one for one in history.records if one.start == decisions[2].start)]
    rows = transactions_of({first: history.logs[first], second: history.logs[second][1:]}, records)
    assert [(row.state, row.identified_by) for row in rows if len(held(row)) and row.parts[0].of == second] == [
        ("aborted", "partition")
    ]
    assert "torn" not in {row.state for row in rows}


@pytest.mark.parametrize("first", ["commit", "abort"])
def test_the_first_record_that_is_left_is_of_version_1(first: str):
    """It seems to be of a fence, which raises epochs as version 2 does; but the markers are older."""
    lowered = Lowered("abort", first=first)
    lowered.compact(1)
    (raised, later) = lowered.rows()
    assert (raised.transactional_id, len(held(raised))) == (None, 3)
    assert (later.transactional_id, later.state, len(held(later))) == ("tx-0", "aborted", 3)


def test_the_first_record_that_is_left_is_of_a_fence():
    history = History([(0, frozenset([0, 1]), "fence")], (0, 0))
    records = [one for one in history.records if one.status != ONGOING and one.transactional_id == "tx-0"]
    (row,) = transactions_of(history.logs, records[1:])
    assert (row.transactional_id, row.identified_by, len(held(row))) == ("tx-0", "marker_epoch", 2)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_marker_without_data_that_says_the_opposite(goes_on: bool):
    """Without a coordinator it may be of version 1, unless a commit has raised the epoch again."""
    first, second = PARTITIONS[:2]
    part = Part(first, 1, 0, 1, "committed", 0, 0, 1, 1, 10, 20)
    marker = without_data(changed(part, of=second, state="aborted"))
    later = [Part(first, 1, 1, 2, "committed", 2, 2, 3, 1, 30, 40)] if goes_on else []
    rows = transactions_of({first: [part, *later], second: [marker]}, [])
    states = [row.state for row in rows if row.producer_epoch == 1]
    assert states == (["torn"] if goes_on else ["committed", "aborted"])


def test_an_abort_that_keeps_its_epoch_before_version_1_is_no_administrators():
    """It may be of version 1 as well: what a later transaction of version 1 shows."""
    lowered = Lowered("restart", "commit")
    lowered.records = lowered.records[-3:]  # of the last one
    rows = lowered.rows()
    assert [(row.state, len(held(row)), row.ended_by) for row in rows] == [
        ("committed", 3, "client"),
        *[("aborted", 1, None)] * 3,
        ("committed", 3, "client"),
    ]


def test_an_abort_that_is_older_than_a_transaction_is_not_an_administrators_of_it():
    """Version 2, then 1, then 2 again: the abort of version 1 and the commit after it have data of one epoch."""
    history = History([(0, frozenset([0, 1, 2]), end) for end in ("commit", "abort", "commit")], (2, 2), {1: 0, 2: 2})
    begin = max(number for number, one in enumerate(history.records) if one.status == EMPTY)
    last = [one for one in history.records[begin + 1 :] if one.start == history.records[-1].start]
    rows = transactions_of(history.logs, last)
    assert [(row.state, len(held(row))) for row in rows] == [("committed", 3), *[("aborted", 1)] * 3, ("committed", 3)]


def test_a_marker_that_keeps_the_epoch_of_its_data_is_not_of_version_2():
    """A leader's clock is behind: the marker of version 1 has the time of the transaction before it."""
    first, second = PARTITIONS[:2]
    lowered = Lowered("abort")
    raised, kept = lowered.logs[second]
    lowered.logs = {first: lowered.logs[first], second: [changed(kept, marker_timestamp=raised.marker_timestamp)]}
    assert "torn" not in {row.state for row in lowered.rows()}


@pytest.mark.parametrize(
    ("first", "second"),
    [(PREPARE_COMMIT, PREPARE_COMMIT), (PREPARE_ABORT, PREPARE_ABORT), (PREPARE_COMMIT, PREPARE_ABORT)],
)
def test_a_decision_that_is_written_again_is_of_the_same_transaction(first: int, second: int):
    """A coordinator did not learn in time that it was written: markers are those of the last one."""
    of = frozenset([PARTITIONS[0]])
    record = StateRecord("tx", ONGOING, 1, 1, 0, 2, of, 10, 10, 1000, 10)
    completed, state = {
        PREPARE_COMMIT: (COMPLETE_COMMIT, "committed"),
        PREPARE_ABORT: (COMPLETE_ABORT, "aborted"),
    }[second]
    records = [
        record,
        record._replace(status=first, producer_epoch=1, last_update=20, timestamp=20),
        record._replace(status=second, producer_epoch=1, last_update=30, timestamp=30),
        record._replace(status=completed, producer_epoch=1, partitions=frozenset(), last_update=40, timestamp=40),
    ]
    part = Part(PARTITIONS[0], 1, 0, 1, state, 0, 0, 1, 1, 10, 35)
    for count in (3, 4):
        (row,) = transactions_of({PARTITIONS[0]: [part]}, records[:count])
        assert (row.transactional_id, row.state, row.decided_at) == ("tx", state, 20)
        assert row.known is not None
        assert row.known.is_complete == (count == 4)


def test_a_next_abort_of_what_was_not_begun_is_another_transaction():
    records = []
    for at in (10, 20):
        record = StateRecord("tx", PREPARE_ABORT, 1, 1, 1, 2, frozenset(), at, 10, 1000, at)
        records += [record, record._replace(status=COMPLETE_ABORT, last_update=at + 5, timestamp=at + 5)]
    log = CoordinatorLog()
    for record in records:
        log.add(record)
    assert [(one.decided_at, one.completed_at) for one in log.transactions] == [(10, 15), (20, 25)]
