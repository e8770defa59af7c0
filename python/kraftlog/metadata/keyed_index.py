"""Records of a type by their keys, for images that note what records change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.metadata.changed import Changed, Noted, Record, records_of
from kraftlog.metadata.quota_entities import comparable
from kraftlog.metadata.record_types import CONFIGS, ImageType

Key = Record


class KeyedIndex:
    """The records of a type that an image holds, and how they were before groups of records changed them.

    Parameters
    ----------
    keyed : ImageType
    rows : pyarrow.Table
        Those that it holds, with the columns of the type's fields.
    """

    def __init__(self, keyed: ImageType, rows: pa.Table) -> None:
        self._type = keyed
        self._noted = Noted(keyed.name)
        self._records: dict[Key, Record] = dict(zip(self._keys(rows), records_of(rows), strict=True))
        self._of_resource: dict[Key, dict[Key, None]] = {}
        if keyed is CONFIGS:
            for key in self._records:
                self._of_resource.setdefault(key[:-1], {})[key] = None

    def apply(self, rows: pa.RecordBatch, groups: npt.NDArray[np.int64]) -> None:
        """Apply records, of which the last column says whether they remove the record of their key."""
        *fields, is_removed = rows.columns
        records = records_of(pa.RecordBatch.from_arrays(fields, rows.schema.names[:-1]))
        changes = zip(groups.tolist(), self._keys(rows), records, is_removed.to_pylist(), strict=True)
        for group, key, record, removes in changes:
            if self._type is CONFIGS and key[-1] is None:  # it removes all configs of its resource
                for one in list(self._of_resource.get(key[:-1], ())):
                    self._set(group, one, None)
            else:
                self._set(group, key, None if removes else record)

    def take_changes(self) -> Changed | None:
        """Return what was noted, and forget it; None when that is nothing."""
        return self._noted.take(self._records.get)

    def _set(self, group: int, key: Key, record: Record | None) -> None:
        self._noted.note(group, key, self._records.get(key))
        if record is not None:
            self._records[key] = record
            if self._type is CONFIGS:
                self._of_resource.setdefault(key[:-1], {})[key] = None
            return
        self._records.pop(key, None)
        configs = self._of_resource.get(key[:-1])
        if configs is not None:
            configs.pop(key, None)
            if not configs:
                del self._of_resource[key[:-1]]

    def _keys(self, rows: pa.Table | pa.RecordBatch) -> list[Key]:
        if not self._type.keys:
            return [()] * int(rows.num_rows)
        return list(zip(*(comparable(rows.column(key)).to_pylist() for key in self._type.keys), strict=True))
