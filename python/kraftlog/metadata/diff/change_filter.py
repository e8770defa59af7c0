"""Which changes are wanted: by kind, by topic, by broker. Records are left out before texts are made of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata.changed import Changed, ChangedByType
from kraftlog.metadata.diff.concerned import key_columns, records_of_brokers, topics_concerned
from kraftlog.metadata.record_types import IMAGE_TYPES, ImageType

KINDS = tuple(one.kind for one in IMAGE_TYPES.values())


@dataclass(frozen=True)
class ChangeFilter:
    """Which changes are wanted; a change must meet all that is given.

    Attributes
    ----------
    kinds : collection of str, optional
        Of what: ``partition``, ``config``.
    topics : collection of str, optional
        Topics, their partitions and configs.
    brokers : collection of int, optional
        Brokers, their configs, and fields of partitions in which they come or go.
    """

    kinds: Collection[str] | None = None
    topics: Collection[str] | None = None
    brokers: Collection[int] | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds or ():
            if kind not in KINDS:
                raise ValueError(f"{kind!r} is not a kind of change; there are {', '.join(KINDS)}")

    def records(self, changed: ChangedByType) -> ChangedByType:
        """Return the records of which some change is wanted."""
        of_types = {name: self._of_type(IMAGE_TYPES[name], one) for name, one in changed.items()}
        return {name: one for name, one in of_types.items() if one is not None}

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are wanted, of those of records that are; ``brokers`` is filled in where they count."""
        if self.brokers is None:
            return rows
        brokers = rows.column("brokers").combine_chunks()
        is_one = pc.is_in(brokers.flatten(), value_set=_numbers(self.brokers))
        concerned = np.zeros(rows.num_rows, bool)
        concerned[pc.list_parent_indices(brokers).filter(is_one).to_numpy()] = True
        return rows.filter(pa.array(concerned))

    def _of_type(self, kind: ImageType, changed: Changed) -> Changed | None:
        if self.kinds is not None and kind.kind not in self.kinds:
            return None
        if self.topics is not None or self.brokers is not None:
            changed = changed.take((changed.was != NOWHERE) | (changed.now != NOWHERE))
        if self.topics is not None:
            topics, _ = topics_concerned(kind, changed.keys(key_columns(kind)), changed.topics)
            is_in = pc.is_in(topics, value_set=pa.array(list(self.topics), pa.string()))
            changed = changed.take(is_in.to_numpy(zero_copy_only=False))
        if self.brokers is not None:
            changed = changed.take(records_of_brokers(kind, changed, self.brokers))
        return changed if len(changed) else None


def _numbers(brokers: Collection[int]) -> pa.Array:
    return pa.array([broker for broker in brokers if abs(broker) < 1 << 31], pa.int32())
