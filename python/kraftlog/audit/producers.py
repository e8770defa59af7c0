"""Checks of idempotent producers: sequences, epochs, and batches that are in a log twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.producer_logs import Place, ProducerLog, place_of
from kraftlog.audit.transactions import ended_by_others
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_file, segment_headers
from kraftlog.topics import TopicPartition
from kraftlog.transactions import sequences
from kraftlog.transactions.sequences import OddBatch
from kraftlog.transactions.transaction import (
    ABORTED,
    CLOCKS_DIFFER_MS,
    MARKER_EPOCH,
    NONE,
    Part,
    Transaction,
)

_REMEMBERED = "The producer wrote within the last day, so that the broker still had its state"
SEQUENCE_GAP = FindingCode(
    "sequence_gap",
    Severity.ERROR,
    "Batches of a producer that the broker acknowledged are missing between two others, or were accepted out of order.",
    f"No offset is missing between the two batches. {_REMEMBERED}.",
)
DUPLICATE_BATCH = FindingCode(
    "duplicate_batch",
    Severity.ERROR,
    "A batch is in the log twice, with the same producer id, epoch and sequence: its records were written twice.",
    "Both batches are in the log, with the same records.",
    (sequences.SEQUENCE_GAP,),
)
SEQUENCE_BACK = FindingCode(
    "sequence_goes_back",
    Severity.ERROR,
    "A producer used sequences again for other records: it began again without a new epoch, or two producers have the"
    " same id and epoch.",
    f"No offset is missing between the two batches. {_REMEMBERED}.",
    (sequences.SEQUENCE_GAP,),
)
PRODUCER_EPOCH_BACK = FindingCode(
    "producer_epoch_goes_back",
    Severity.ERROR,
    "A producer that was fenced wrote, or a transaction has batches of several epochs: records of a zombie are in the"
    " log.",
    f"{_REMEMBERED}, or its transaction was open. Or __transaction_state has the transaction that the markers end, from"
    " its begin on, and with the partition.",
    (sequences.BAD_PRODUCER_EPOCH,),
)
NOT_TRANSACTIONAL = FindingCode(
    "not_transactional",
    Severity.ERROR,
    "A transactional producer wrote outside of transactions: these records cannot be aborted, and consumers see them"
    " before the transaction has ended.",
    "The producer has a transaction open in the partition, or __transaction_state has a transaction of its producer id"
    " with the topic.",
)
IMPOSSIBLE_HEADER = FindingCode(
    "impossible_header",
    Severity.ERROR,
    "A batch has a header that no broker writes: something else has written or changed it.",
    "The checksum is right, and the batch has magic 2.",
)
LATE_BEGIN = FindingCode(
    "first_sequence_not_zero",
    Severity.NOTE,
    "The first batches of a producer are not in the log: they were lost or rejected, or the topic was deleted and"
    " created again while the producer ran.",
    "The log has all its offsets from 0 on.",
)
SUSPECTED_DUPLICATE = FindingCode(
    "suspected_duplicate",
    Severity.NOTE,
    "A producer sent a batch again under another producer id or epoch, or without any: the records are there twice, if"
    " they were not meant to be.",
    "Both batches have the same records with the same keys, values, headers and times, near each other in the log;"
    " neither is aborted, and producer and epoch do not show that they were sent on purpose.",
)


def sequence_findings(evidence: Evidence) -> Iterator[Finding]:
    """Return batches whose sequence does not follow from the producer's earlier ones."""
    for log in evidence.producer_logs.logs.values():
        same = _with_same_sequence(log)
        for segment, odd in log.odd:
            if odd.error == sequences.SEQUENCE_GAP:
                code, known = SEQUENCE_BACK if odd.repeats else SEQUENCE_GAP, odd.what
                if (segment, odd.position) in same:
                    first, second = same[segment, odd.position]
                    is_same = _records_of(first) == _records_of(second) is not None
                    code = DUPLICATE_BATCH if is_same else SEQUENCE_BACK
                    known += f"; the batch at offset {first.base_offset} has this sequence and "
                    known += "the same records" if is_same else "other records"
                yield _finding(evidence, code, log, odd.base_offset, known)


def epoch_findings(evidence: Evidence) -> Iterator[Finding]:
    """Return batches with an epoch that their producer no longer had."""
    explained = ended_by_others(evidence)
    odd_offsets: dict[tuple[TopicPartition, int], list[int]] = defaultdict(list)
    for log, _, odd in evidence.producer_logs.odd_batches():
        if odd.error != sequences.BAD_PRODUCER_EPOCH or odd.is_marker:
            continue
        parts = evidence.producer_logs.parts.get(log.of)
        holding = None if parts is None else parts.holding(odd.producer_id, odd.base_offset)
        is_explained = holding is not None and (*log.of, holding[0].first_offset) in explained
        if not is_explained and not _is_of_next(odd, holding):
            odd_offsets[log.of, odd.producer_id].append(odd.base_offset)
            yield _finding(evidence, PRODUCER_EPOCH_BACK, log, odd.base_offset, odd.what)
    for one in evidence.producer_logs.transactions:
        for part in one.parts:
            offsets = odd_offsets[part.of, part.producer_id]
            is_explained = (*part.of, part.first_offset) in explained
            is_explained |= any(part.first_offset <= at <= part.last_offset for at in offsets)
            if _has_other_epoch(one, part) and not is_explained:
                assert one.known is not None
                what = f"producer {part.producer_id}: batches of epoch {part.data_epoch} in a transaction of"
                known = f"{what} {one.known.transactional_id} that has epoch {one.known.data_epoch}"
                log = evidence.producer_logs.logs[part.of]
                yield _finding(evidence, PRODUCER_EPOCH_BACK, log, part.first_offset, known)


def _is_of_next(odd: OddBatch, holding: tuple[Part, Transaction] | None) -> bool:
    """Whether a batch is of a later transaction: the coordinator ended this one, and its marker is lost."""
    if holding is None or not odd.is_later:
        return False
    part, transaction = holding
    return not part.has_ended and transaction.known is not None and transaction.known.decision is not None


def _has_other_epoch(one: Transaction, part: Part) -> bool:
    """Return whether the batches of a part do not have the epoch that the producer had, as its coordinator says."""
    known = one.known
    if known is None or known.data_epoch is None or known.partitions is None or one.identified_by != MARKER_EPOCH:
        return False
    # a partition of another cluster may have been copied, with its producers and markers
    is_of_known = part.of in known.partitions and part.marker_timestamp + CLOCKS_DIFFER_MS > known.start
    return is_of_known and part.data_epoch not in (NONE, known.data_epoch)


def plain_batches(evidence: Evidence) -> Iterator[Finding]:
    """Return batches of transactional producers that are in no transaction."""
    for log in evidence.producer_logs.logs.values():
        inside = {odd.base_offset: odd.what for _, odd in log.odd if odd.error == sequences.NOT_TRANSACTIONAL}
        for producer_id, offset in log.plain_producers.items():
            transaction = evidence.first_transactions.get((producer_id, log.of.topic))
            if transaction is not None:
                what = f"producer {producer_id}: a batch outside of transactions, of transactional id "
                inside.setdefault(offset, f"{what}{transaction.transactional_id}")
        for offset, what in sorted(inside.items()):
            yield _finding(evidence, NOT_TRANSACTIONAL, log, offset, what)


def impossible_headers(evidence: Evidence) -> Iterator[Finding]:
    """Return batches whose header no broker writes."""
    for log in evidence.producer_logs.logs.values():
        for offset, what in log.impossible:
            yield _finding(evidence, IMPOSSIBLE_HEADER, log, offset, f"a batch that no broker writes: {what}")


def late_begins(evidence: Evidence) -> Iterator[Finding]:
    """Return producers whose first batches are not in the log."""
    for log in evidence.producer_logs.logs.values():
        for one in log.late_begins:
            known = f"producer {one.producer_id}: the first batch of epoch {one.producer_epoch} has base_sequence "
            yield _finding(evidence, LATE_BEGIN, log, one.base_offset, f"{known}{one.base_sequence}")


def suspected_duplicates(evidence: Evidence) -> Iterator[Finding]:
    """Return batches whose records an earlier batch has; a finding for each partition."""
    for log in evidence.producer_logs.logs.values():
        twins = [
            (first, second)
            for first, second in log.twins
            if _is_visible(evidence, log, first)
            and _is_visible(evidence, log, second)
            and _records_of(first) == _records_of(second) is not None
        ]
        if twins:
            first, second = twins[0]
            count = "1 batch repeats" if len(twins) == 1 else f"{len(twins)} batches repeat"
            known = f"{count} an earlier one; that at offset {second.base_offset} repeats {first.base_offset}"
            yield _finding(evidence, SUSPECTED_DUPLICATE, log, second.base_offset, known)


def _finding(evidence: Evidence, code: FindingCode, log: ProducerLog, offset: int, known: str) -> Finding:
    shown = evidence.from_offset("batches", log.of, offset)
    return Finding(code, known, log.of.topic, log.of.partition, offset, next_command=shown)


def _is_visible(evidence: Evidence, log: ProducerLog, place: Place) -> bool:
    parts = evidence.producer_logs.parts.get(log.of)
    holding = None if parts is None else parts.holding(place.producer_id, place.base_offset)
    return holding is None or holding[0].state != ABORTED


def _with_same_sequence(log: ProducerLog) -> dict[tuple[Segment, int], tuple[Place, Place]]:
    """Return, by segment and position, the batches that repeat a sequence, each after the first one that has it."""
    repeats = {(segment.path, odd.position) for segment, odd in log.odd if odd.repeats}
    producers = np.unique([odd.producer_id for _, odd in log.odd if odd.repeats])
    firsts: dict[tuple[int, int, int], Place] = {}
    found = {}
    for segment in log.segments if repeats else ():
        for headers in segment_headers(segment, []):
            chosen = np.isin(headers["producer_id"], producers) & (headers["base_sequence"] >= 0)
            for header in headers[chosen]:
                place = place_of(segment, header)
                sequence = place.producer_id, int(header["producer_epoch"]), int(header["base_sequence"])
                first = firsts.setdefault(sequence, place)
                if first is not place and (segment.path, place.position) in repeats:
                    found[segment, place.position] = first, place
    return found


def _records_of(place: Place) -> bytes | None:
    """Return the records of a batch as they are in the file; None where they cannot be read."""
    faults: list[Fault] = []
    records = None
    with segment_file(place.segment, faults, strict=False) as file:
        records = file.read(place.position + RECORD_BATCH_OVERHEAD, place.position + place.size_in_bytes)
    return None if faults else records
