"""Records of which the last one of a key counts: features, controllers, configs, quotas, ACLs and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata import schemas
from kraftlog.metadata.last_by_key import Codes, codes_of, last_rows
from kraftlog.metadata.quota_entities import entity_texts, sorted_entities
from kraftlog.metadata.registrations import by_name
from kraftlog.metadata.runs import Runs

TOPIC_RESOURCE = 2
METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
IS_REMOVED = "is_removed"

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Keyed:
    """A type of record that an image holds one of for each key.

    Attributes
    ----------
    name : str
        Of the type.
    keys : tuple of str
        Columns; none where there is one record at most.
    remover : str or None
        The type whose records, with the same key columns, remove one.
    is_removed : callable or None
        Says which records of the type itself remove what their key has.
    """

    name: str
    keys: tuple[str, ...]
    remover: str | None = None
    is_removed: Callable[[pa.RecordBatch], pa.Array] | None = None

    def codes(self, rows: pa.RecordBatch) -> Codes:
        """Return a number for each row that is the same for the same key."""
        columns = [rows.column(key) for key in self.keys]
        texts = [entity_texts(column) if pa.types.is_list(column.type) else column for column in columns]
        return codes_of(texts, rows.num_rows)


FEATURES = Keyed("FeatureLevelRecord", ("name",), None, lambda rows: pc.equal(rows.column("feature_level"), 0))
CONTROLLERS = Keyed("RegisterControllerRecord", ("controller_id",))
CONFIGS = Keyed(
    "ConfigRecord", ("resource_type", "resource_name", "name"), None, lambda rows: pc.is_null(rows.column("value"))
)
QUOTAS = Keyed("ClientQuotaRecord", ("entity", "key"), None, lambda rows: rows.column("remove"))
PRODUCER_IDS = Keyed("ProducerIdsRecord", (), None, lambda rows: pc.less(rows.column("next_producer_id"), 0))
ACLS = Keyed("AccessControlEntryRecord", ("id",), "RemoveAccessControlEntryRecord")
KEYED = (
    FEATURES,
    CONTROLLERS,
    CONFIGS,
    QUOTAS,
    PRODUCER_IDS,
    ACLS,
    Keyed("UserScramCredentialRecord", ("name", "mechanism"), "RemoveUserScramCredentialRecord"),
    Keyed("DelegationTokenRecord", ("token_id",), "RemoveDelegationTokenRecord"),
)


def empty_runs(keyed: Keyed) -> Runs:
    """Return what an empty image has of a type."""
    schema = schemas.schema_of(keyed.name).append(pa.field(IS_REMOVED, pa.bool_()))
    return Runs(schema, partial(_fold_configs if keyed is CONFIGS else _fold, keyed))


def changes(
    keyed: Keyed, batches: Mapping[str, pa.RecordBatch], removed_topics: tuple[npt.NDArray[np.int64], pa.Array]
) -> pa.RecordBatch | None:
    """Return what the records of a chunk do to a type, in their order; None for nothing.

    Parameters
    ----------
    keyed : Keyed
    batches : Mapping of str to pyarrow.RecordBatch
    removed_topics : tuple
        Offsets and names of topics that the chunk removes: their configs go, too.
    """
    schema = empty_runs(keyed).schema
    parts: list[pa.RecordBatch] = []
    offsets: list[npt.NDArray[np.int64]] = []
    if keyed.name in batches and batches[keyed.name].num_rows:
        rows = _normalised(keyed, schemas.rows_of_type(batches[keyed.name], keyed.name))
        is_removed = keyed.is_removed(rows) if keyed.is_removed else pa.repeat(False, rows.num_rows)
        parts.append(pa.RecordBatch.from_arrays([*rows.columns, is_removed], schema=schema))
        offsets.append(schemas.offsets_of(batches[keyed.name]))
    if keyed.remover and keyed.remover in batches and batches[keyed.remover].num_rows:
        removing = batches[keyed.remover]
        given = {key: schemas.column_of(removing, keyed.remover, key) for key in keyed.keys}
        parts.append(_removals(schema, given, removing.num_rows))
        offsets.append(schemas.offsets_of(removing))
    if keyed is CONFIGS and len(removed_topics[0]):
        count = len(removed_topics[0])
        given = {"resource_type": pa.repeat(pa.scalar(TOPIC_RESOURCE, pa.int8()), count)}
        parts.append(_removals(schema, given | {"resource_name": removed_topics[1]}, count))
        offsets.append(removed_topics[0])
    if not parts:
        return None
    rows = pa.concat_batches(parts)
    if len(parts) > 1:
        rows = rows.take(pa.array(np.argsort(np.concatenate(offsets), kind="stable")))
    # a record of kraft.version is of no account: the log's control records tell it
    return rows.filter(pc.not_equal(rows.column("name"), KRAFT_VERSION)) if keyed is FEATURES else rows


def _normalised(keyed: Keyed, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as an image holds them: what Kafka keeps as maps in order, and no more than it keeps."""
    if keyed is CONTROLLERS:
        return pa.RecordBatch.from_pylist([by_name(row) for row in rows.to_pylist()], schema=rows.schema)
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if keyed is QUOTAS:
        columns["entity"] = sorted_entities(columns["entity"])
    elif keyed is PRODUCER_IDS:  # the next one is known, not who took the last block
        columns["broker_id"] = pa.repeat(pa.scalar(-1, pa.int32()), rows.num_rows)
        columns["broker_epoch"] = pa.repeat(pa.scalar(-1, pa.int64()), rows.num_rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _removals(schema: pa.Schema, given: dict[str, pa.Array], count: int) -> pa.RecordBatch:
    columns = given | {IS_REMOVED: pa.repeat(True, count)}
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fold(keyed: Keyed, rows: pa.RecordBatch, is_all: bool) -> pa.RecordBatch:
    return _taken(rows, last_rows(keyed.codes(rows)), is_all)


def _fold_configs(keyed: Keyed, rows: pa.RecordBatch, is_all: bool) -> pa.RecordBatch:
    """Fold configs, of which a row without a name removes all that their resource has."""
    type_key, name_key, config_key = keyed.keys
    resources = codes_of([rows.column(type_key), rows.column(name_key)], rows.num_rows)
    configs = rows.column(config_key)
    removals = np.flatnonzero(configs.is_null().to_numpy(zero_copy_only=False))
    last_removal = np.full(resources.end, -1, np.int64)
    last_removal[resources.rows[removals]] = removals
    last = last_rows(resources.with_key(configs))
    return _taken(rows, last[last >= last_removal[resources.rows[last]]], is_all)


def _taken(rows: pa.RecordBatch, kept: npt.NDArray[np.int64], is_all: bool) -> pa.RecordBatch:
    if is_all:
        kept = kept[~rows.column(IS_REMOVED).to_numpy(zero_copy_only=False)[kept]]
    return rows.take(pa.array(kept))
