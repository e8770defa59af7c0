"""The records of one transaction, over all its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.discover import Discovery
from kraftlog.read.partitions import by_partition
from kraftlog.tables.lines import line_segments
from kraftlog.tables.read import Read
from kraftlog.tables.stage import Source
from kraftlog.tables.transactions import coordinator_transactions, transactions_of_segments
from kraftlog.transactions.transaction import Part, ProducerIdAndEpoch, Transaction

EPOCHS_SHOWN = 10


class OfTransaction:
    """Keeps the records of a transaction in any state; other partitions and offsets are not read.

    Parameters
    ----------
    wanted : ProducerIdAndEpoch
    files : Discovery
        All files that may name its partitions, of all replicas.
    """

    def __init__(self, wanted: ProducerIdAndEpoch, files: Discovery) -> None:
        self._wanted, self._files = wanted, files

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return its records, one partition after another.

        Raises
        ------
        ValueError
            When there is no such transaction.
        """
        names = read.schema.names
        more = [name for name in ("producer_id", "is_transactional") if name not in names]
        arrow_schema = schema.RECORDS.select([*names, *more])
        groups = {group[0].topic_partition: group for group in by_partition(read.segments)}
        for part in self._parts(read):
            group = groups.get(part.of)
            if group is None:
                continue  # of a partition that is not asked for
            options = _within(read.options, part)
            files = Discovery(segments=group)
            for batch in source(replace(read, files=files, options=options, schema=arrow_schema)):
                is_own = pc.and_(pc.equal(batch["producer_id"], part.producer_id), batch["is_transactional"])
                yield batch.filter(is_own).select(names)

    def _parts(self, read: Read) -> list[Part]:
        """Return its parts in partitions, and add notes on parts that are not shown."""
        whole = read.of_whole_log().faults_only()
        segments = line_segments(self._files, [], heals=read.options.heal)
        known = coordinator_transactions(self._files, whole)
        epochs: set[int] = set()
        found: list[Transaction] = []
        for transactions in transactions_of_segments(segments, known, whole):
            of_producer = [one for one in transactions if one.producer_id == self._wanted.producer_id]
            epochs |= {one.producer_epoch for one in of_producer}
            found += [one for one in of_producer if one.producer_epoch == self._wanted.producer_epoch]
        if not found:
            raise ValueError(f"there is no transaction {self._wanted}: {_known_epochs(self._wanted, epochs)}")
        parts = [part for one in found for part in one.parts]
        if len(found) > 1:
            read.notes.append(
                f"{len(found)} transactions have producer id {self._wanted.producer_id} and epoch "
                f"{self._wanted.producer_epoch}: before transaction version 2, epochs do not tell them apart"
            )
        unknown = sorted({str(part.of) for part in parts if part.state is None})
        if unknown:
            read.notes.append(
                f"transaction {self._wanted} also has partitions without records here: {', '.join(unknown)}"
            )
        return sorted((part for part in parts if part.has_ended or part.records_count), key=_place)


def _place(part: Part) -> tuple[str, int, int]:
    return *part.of, max(part.first_offset, part.marker_offset)


def _within(options: ReadOptions, part: Part) -> ReadOptions:
    first = part.first_offset if part.first_offset >= 0 else part.marker_offset
    last = max(part.last_offset, part.marker_offset)
    return replace(options, start_offset=max(options.start_offset, first), end_offset=min(options.end_offset, last + 1))


def _known_epochs(wanted: ProducerIdAndEpoch, epochs: set[int]) -> str:
    if not epochs:
        return f"producer id {wanted.producer_id} has none"
    shown = ", ".join(str(epoch) for epoch in sorted(epochs)[-EPOCHS_SHOWN:])
    return f"the last epochs of producer id {wanted.producer_id} are {shown}"
