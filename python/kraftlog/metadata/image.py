"""The metadata image: the state of the cluster after the records of ``__cluster_metadata`` up to an offset.

It holds the records that a snapshot of it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.errors import Fault
from kraftlog.metadata import acls, brokers, schemas, versions
from kraftlog.metadata.absent_fields import without_absent_fields
from kraftlog.metadata.changed import ONE_GROUP, Changed, Groups, Noted, groups_at
from kraftlog.metadata.kafka_names import ELR_VERSION
from kraftlog.metadata.keyed_records import KEYED, KeyedRecords
from kraftlog.metadata.record_types import FEATURES, IMAGE_TYPES, PARTITIONS, TOPICS
from kraftlog.metadata.topics.elr import without_elr
from kraftlog.metadata.topics.state import TopicsState

TYPES = tuple(IMAGE_TYPES)


class Image:
    """A metadata image.

    Records that Kafka would refuse, since what they change is not there, leave the image as it is; each is one of
    ``faults``.

    Attributes
    ----------
    offset : int
        Of the last record that was applied; -1 for none. It may be set to that of a later record that does not change
        the image.
    faults : list of Fault
    """

    def __init__(self) -> None:
        self.offset = -1
        self.faults: list[Fault] = []
        self._topics = TopicsState()
        self._brokers: brokers.Brokers = {}
        self._keyed = {keyed.name: KeyedRecords(keyed) for keyed in KEYED}
        self._acl_ids: set[bytes] = set()
        self._is_shared = False
        self._noted_brokers: Noted | None = None

    @classmethod
    def empty(cls) -> Image:
        """Return the image before the first record."""
        return cls()

    def copy(self) -> Image:
        """Return an image with the same records; changes of one of the two are not in the other.

        The two share what neither of them changes.
        """
        copied = Image()
        copied.offset, copied.faults = self.offset, list(self.faults)
        copied._topics = self._topics.copy()
        copied._brokers, copied._acl_ids = self._brokers, self._acl_ids
        copied._keyed = {name: records.copy() for name, records in self._keyed.items()}
        self._is_shared = copied._is_shared = True
        return copied

    def apply(self, tables: Mapping[str, pa.RecordBatch], groups: Groups = ONE_GROUP) -> None:
        """Apply records that follow those applied so far.

        Parameters
        ----------
        tables : Mapping of str to pyarrow.RecordBatch
            Records by the name of their type. The first column is ``offset``, int64 and ascending, the others are the
            type's fields, uuids as 16 bytes. Other types are ignored.
        groups : int64[groups, 2]
            Where each group of records begins and its number, for an image that notes what they change.
        """
        faults: list[Fault] = []
        removed = self._topics.apply(tables, faults, groups)
        self._brokers = brokers.apply(self._brokers, tables, faults, self._broker_note(groups))
        if acls.ENTRY in tables or acls.REMOVE in tables:
            if self._is_shared:
                self._acl_ids, self._is_shared = set(self._acl_ids), False
            acls.apply(self._acl_ids, tables, faults)
        for keyed in self._keyed.values():
            keyed.apply(tables, removed, faults, groups)
        self.faults.extend(sorted(faults, key=lambda fault: fault.base_offset or 0))
        for batch in tables.values():
            if batch.num_rows:
                self.offset = max(self.offset, int(np.max(schemas.offsets_of(batch))))

    def begin_notes(self) -> None:
        """Note what groups of records change from here on. A copy of the image takes no notes.

        Once it costs what the image has; then records cost what they change.
        """
        self._topics.begin_notes()
        self._noted_brokers = Noted(brokers.REGISTER)
        for keyed in self._keyed.values():
            keyed.begin_notes()

    def take_changes(self) -> dict[str, Changed]:
        """Return what was noted, by type in the order of ``TYPES``, and forget it."""
        assert self._noted_brokers is not None
        changes: dict[str, Changed | None] = {**self._topics.take_changes()}
        changes[brokers.REGISTER] = self._noted_brokers.take(lambda broker: brokers.fields(self._brokers.get(broker)))
        changes |= {name: keyed.take_changes() for name, keyed in self._keyed.items()}
        return {name: changed for name in TYPES if (changed := changes.get(name)) is not None}

    def _broker_note(self, groups: Groups) -> brokers.Note | None:
        noted = self._noted_brokers
        if noted is None:
            return None

        def note(offset: int, broker: int, registration: brokers.Registration | None) -> None:
            group = int(groups_at(groups, np.array([offset]))[0])
            noted.note(group, broker, brokers.fields(registration))

        return note

    def tables(self, names: Collection[str] = TYPES) -> dict[str, pa.Table]:
        """Return the image's records by the name of their type, each type in a fixed order.

        Parameters
        ----------
        names : collection of str, optional
            Of types; by default all.

        Returns
        -------
        dict of str to pyarrow.Table
            One of each type, in the order of ``TYPES``. Columns are the type's fields, uuids as 16 bytes.
        """
        tables = self.small_tables(names)
        if TOPICS.name in names or PARTITIONS.name in names:
            tables |= self._topics.tables()
        return {name: tables[name] for name in TYPES if name in names}

    def small_tables(self, names: Collection[str] = TYPES) -> dict[str, pa.Table]:
        """Return the tables of all types, or of those of the names, but topics and partitions."""
        tables = {name: keyed.table() for name, keyed in self._keyed.items() if name in names}
        return tables | ({brokers.REGISTER: brokers.table(self._brokers)} if brokers.REGISTER in names else {})

    def topics(self, topics_at_once: int) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Return topics and their partitions as ``tables`` has them, of so many topics at a time."""
        return self._topics.pieces(topics_at_once)

    def records(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return the records of a snapshot, in the order in which one is written."""
        for name, table in self.tables().items():
            for batch in table.combine_chunks().to_batches():
                yield name, batch

    def snapshot_records(self, metadata_version_level: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        """Return the records of a snapshot with the version in which each type is written.

        Parameters
        ----------
        metadata_version_level : int
            Types that this level does not have are left out; ``versions`` says which those are. Fields that the version
            of a type does not have are absent, unless their content would be lost. Eligible leader replicas are
            written, as Kafka does, only when their feature is on.
        """
        has_elr = dict(self.feature_levels()).get(ELR_VERSION, 0) > 0
        for name, batch in self.records():
            version = versions.record_version(name, metadata_version_level)
            if version is not None:
                rows = batch if has_elr else without_elr(name, batch)
                yield name, version, without_absent_fields(name, version, rows)

    @property
    def metadata_version(self) -> int | None:
        """The level of the feature ``metadata.version``; None where there is none."""
        levels = dict(self.feature_levels())
        return levels.get(METADATA_VERSION)

    def feature_levels(self) -> Iterator[tuple[str, int]]:
        """Return names and levels of the features."""
        rows = self._keyed[FEATURES.name].table()
        return zip(rows.column("name").to_pylist(), rows.column("feature_level").to_pylist(), strict=True)

    @property
    def counts(self) -> tuple[int, int]:
        """How many topics and partitions there are."""
        return self._topics.counts

    @property
    def partitions_count(self) -> int:
        """How many partitions there are."""
        return self.counts[1]
