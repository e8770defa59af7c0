"""What differs between two clusters: their images side by side, by names."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata.diff.diff import SCHEMA
from kraftlog.metadata.diff.images import changed_tables
from kraftlog.metadata.diff.rows import change_rows, main_fields
from kraftlog.metadata.image import Image
from kraftlog.metadata.record_types import ACLS, BROKERS, CONTROLLERS, PARTITIONS, PRODUCER_IDS, TOPICS

Tables = Mapping[str, pa.Table]

# what a cluster makes up by itself
NOT_COMPARED = {
    BROKERS.name: ("incarnation_id", "broker_epoch", "log_dirs", "cordoned_log_dirs"),
    CONTROLLERS.name: ("incarnation_id",),
    TOPICS.name: ("topic_id",),
    PARTITIONS.name: ("leader_epoch", "partition_epoch", "directories"),
}


def cluster_diff(before: Image, after: Image) -> pa.Table:
    """Return what differs between two clusters, as ``diff`` does.

    Topics are matched by their names, partitions by the names of their topics, ACLs by what they say. Ids, epochs,
    directories and blocks of producer ids are not compared: each cluster makes up its own.

    Parameters
    ----------
    before, after : Image

    Returns
    -------
    pyarrow.Table
        Columns as those of ``diff``; ``key`` of an ACL is empty.
    """
    rows = change_rows(changed_tables(_by_name(before.tables()), _by_name(after.tables())), _compared_fields)
    is_acl = pc.equal(rows.column("kind"), ACLS.kind)
    keys = pc.if_else(is_acl, "", rows.column("key"))
    return rows.set_column(rows.schema.get_field_index("key"), "key", keys).select(SCHEMA.names)


def _compared_fields(name: str, rows: pa.Table) -> pa.Array:
    return main_fields(name, rows, without=NOT_COMPARED.get(name, ()))


def _by_name(tables: Tables) -> Tables:
    """Return records with ids made of names, and nothing in fields that are not compared."""
    topics = tables[TOPICS.name]
    of_names = _ids(topics.column("name").to_pylist())
    at = pc.index_in(tables[PARTITIONS.name].column("topic_id"), value_set=topics.column("topic_id").combine_chunks())
    said = tables[ACLS.name].select(list(ACLS.shown)).to_pylist()
    ids = {
        TOPICS.name: ("topic_id", of_names),
        PARTITIONS.name: ("topic_id", of_names.take(at.combine_chunks())),
        ACLS.name: ("id", _ids([repr(tuple(acl.values())) for acl in said])),
    }
    by_name = {}
    for name, table in tables.items():
        rows = table.slice(0, 0) if name == PRODUCER_IDS.name else table
        for column in NOT_COMPARED.get(name, ()):
            rows = _with(rows, column, pa.nulls(rows.num_rows, rows.schema.field(column).type))
        by_name[name] = _with(rows, *ids[name]) if name in ids else rows
    return by_name


def _with(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), values)


def _ids(names: list[str]) -> pa.Array:
    """Return an id for each name, and for each time that it comes."""
    times: dict[str, int] = {}
    ids = []
    for name in names:
        times[name] = times.get(name, 0) + 1
        ids.append(blake2b(f"{times[name]} {name}".encode(), digest_size=16).digest())
    return pa.array(ids, pa.binary(16))
