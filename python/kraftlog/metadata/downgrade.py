"""Downgrades of ``metadata.version``: the records of the snapshot, and the losses.

Kafka's controller writes a snapshot at the lower level, without records and fields that the level does not have. By
KIP-778 a downgrade is safe if metadata changed at none of the levels above the lower one; otherwise it must be forced,
and Kafka 4 refuses that. Levels, features and records that kraftlog does not know make a downgrade unknown, never safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.metadata_version import METADATA_VERSION, NEWEST_LEVEL, has_metadata_transactions
from kraftlog.metadata import levels, schemas
from kraftlog.metadata.absent_fields import fields_without_place, loses_content
from kraftlog.metadata.record_keys import record_keys, topic_names
from kraftlog.metadata.versions import record_version

DROPPED, LOSSY, REFUSED = "dropped", "lossy", "refused"
KEPT, KEPT_IN_OLDER_VERSION = "kept", "kept_in_older_version"
SAFE, NEEDS_FORCE, UNKNOWN, IMPOSSIBLE = "safe", "needs force", "unknown", "impossible"

FEATURES = "FeatureLevelRecord"

COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("field", pa.string()),
        ("outcome", pa.string()),
        ("message", pa.string()),
    ]
)


@dataclass(frozen=True)
class DowngradeReport:
    """The effect of a downgrade.

    Attributes
    ----------
    from_level, to_level : int
    verdict : {"safe", "needs force", "unknown", "impossible"}
    reasons : tuple of str
        Reasons, and necessary steps; one sentence each.
    table : pyarrow.Table
        Effects on records: ``kind`` is their type. ``outcome`` is ``dropped`` (not in the snapshot), ``lossy``
        (it lacks a field), ``refused`` (the level of the feature must be lowered first), ``unknown`` (newer than
        everything that kraftlog knows), ``kept`` (unchanged, but see the message) or ``kept_in_older_version`` (all
        records of a type, without a loss).
    """

    from_level: int
    to_level: int
    verdict: str
    reasons: tuple[str, ...]
    table: pa.Table

    @property
    def is_lossless(self) -> bool:
        """Whether the downgrade is safe and loses nothing."""
        lost = pc.is_in(self.table.column("outcome"), value_set=pa.array([DROPPED, LOSSY, REFUSED, UNKNOWN]))
        return self.verdict == SAFE and not pc.any(lost, min_count=0).as_py()


def downgrade_report(
    tables: Mapping[str, pa.Table], from_level: int, to_level: int, unread: Sequence[str] = ()
) -> DowngradeReport:
    """Return the effect of a downgrade on an image.

    Parameters
    ----------
    tables : Mapping of str to pyarrow.Table
        The records of the image by type, with uuids as 16 bytes.
    from_level, to_level : int
        Levels of ``metadata.version``; equal if only the other features are checked.
    unread : sequence of str
        Messages of faults, such as a record of an unknown type. The image lacks these records, so that the downgrade is
        unknown.
    """
    verdict, reasons = _verdict(from_level, to_level, list(_newer(tables, from_level, unread)))
    rows: list[pa.Table] = []
    if verdict != IMPOSSIBLE:
        for name, table in tables.items():
            rows += _of_features(table, to_level) if name == FEATURES else _of_type(name, table, tables, to_level)
        rows += _older_versions(tables, from_level, to_level)
    return DowngradeReport(from_level, to_level, verdict, reasons, pa.concat_tables([COLUMNS.empty_table(), *rows]))


def downgraded(tables: Mapping[str, pa.Table], to_level: int) -> dict[str, tuple[int, pa.Table]]:
    """Return the records of the snapshot that a downgrade writes: version and rows of each type, in order.

    Parameters
    ----------
    tables : Mapping of str to pyarrow.Table
        The records of the image by type.
    to_level : int
        Level of ``metadata.version``; its record is the first one.
    """
    features = tables.get(FEATURES, schemas.schema_of(FEATURES).empty_table())
    by_type: dict[str, tuple[int, pa.Table]] = {}
    for name, rows in {FEATURES: _features_at(features, to_level), **tables}.items():
        version = record_version(name, to_level)
        table = _features_at(rows, to_level) if name == FEATURES else rows
        if version is None or not table.num_rows:
            continue
        for field in fields_without_place(name, version):
            at = table.schema.get_field_index(field.column)
            table = table.set_column(
                at, table.schema.field(at), schemas.absent_column(name, field.column, table.num_rows)
            )
        by_type[name] = (version, table)
    return by_type


def newer_features(tables: Mapping[str, pa.Table]) -> list[tuple[str, int]]:
    """Return the features of an image with unknown names or levels, and these levels."""
    features = tables.get(FEATURES, schemas.schema_of(FEATURES).empty_table())
    return [
        (feature, level)
        for feature, level in _feature_levels(features)
        if feature != METADATA_VERSION and not levels.is_known_feature(feature, level)
    ]


def _newer(tables: Mapping[str, pa.Table], from_level: int, unread: Sequence[str]) -> Iterator[str]:
    """Return a sentence for each unknown level, and one if the image is incomplete."""
    newest = levels.name_of(NEWEST_LEVEL)
    if levels.is_newer(from_level):
        yield f"metadata.version {from_level} is unknown; the newest known one is {newest}"
    for feature, level in newer_features(tables):
        yield f"level {level} of {feature} is unknown, and so is what depends on it"
    if unread:
        count = f" (the first of {len(unread)} faults)" if len(unread) > 1 else ""
        yield f"the log cannot be read whole: {unread[0]}{count}"


def _verdict(from_level: int, to_level: int, unknown: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    before, after = levels.name_of(from_level), levels.name_of(to_level)
    if to_level > from_level or (to_level == from_level and not unknown):
        return IMPOSSIBLE, (f"{after} is not below {before}",)
    if to_level < levels.OLDEST_LEVEL:
        return IMPOSSIBLE, (
            f"{after} is below {levels.name_of(levels.OLDEST_LEVEL)}, the oldest level that Kafka 4 knows",
        )
    changes = levels.metadata_changes(from_level, to_level)
    if not changes:
        safe = f"metadata did not change from {after} to {before}"
        return (UNKNOWN, tuple(unknown)) if unknown else (SAFE, (safe,))
    names = ", ".join(levels.name_of(level) for level in changes)
    reasons = [
        f"metadata changed with {names}: the downgrade has to be forced",
        "Kafka 4 does not do it. Unforced: Refusing to perform the requested downgrade because it might delete "
        "metadata information. Forced: Unsafe metadata downgrade is not supported in this version.",
    ]
    if has_metadata_transactions(from_level) and not has_metadata_transactions(to_level):
        reasons.append(
            f"{after} has no metadata transactions: delete the log before the snapshot, which contains their markers"
        )
    return (UNKNOWN if unknown else NEEDS_FORCE), (*unknown, *reasons)


def _of_features(table: pa.Table, to_level: int) -> Iterator[pa.Table]:
    """Return what happens to the features other than ``metadata.version``, which themselves do not follow it."""
    after = levels.name_of(to_level)
    for feature, level in _feature_levels(table):
        needs = levels.feature_level(feature, level)
        if feature == METADATA_VERSION:
            continue
        if not levels.is_known_feature(feature, level):
            yield _row(FEATURES, feature, "featureLevel", UNKNOWN, f"level {level} is unknown; it stays")
        elif needs.depends_on > to_level:
            message = f"level {level} depends on metadata.version {levels.name_of(needs.depends_on)}; lower it first"
            yield _row(FEATURES, feature, "featureLevel", REFUSED, message)
        elif needs.bootstrap > to_level:
            message = f"level {level} stays; it is of {levels.name_of(needs.bootstrap)}. Brokers of {after} that do not"
            yield _row(FEATURES, feature, "featureLevel", KEPT, f"{message} support it are refused")


def _of_type(name: str, table: pa.Table, tables: Mapping[str, pa.Table], to_level: int) -> Iterator[pa.Table]:
    """Return which records of a type, or which of their fields, are lost."""
    version = record_version(name, to_level)
    after = levels.name_of(to_level)
    if version is None:
        yield _rows(name, _keys(name, table, tables), None, DROPPED, f"{after} has no records of this type")
        return
    for field in fields_without_place(name, version):
        losing = table.filter(loses_content(field, table.column(field.column)))
        message = f"{after} writes version {version}, which has no such field"
        yield _rows(name, _keys(name, losing, tables), field.name, LOSSY, message)


def _keys(name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Array:
    return record_keys(name, rows, topic_names(name, rows, tables))


def _older_versions(tables: Mapping[str, pa.Table], from_level: int, to_level: int) -> Iterator[pa.Table]:
    for name, table in tables.items():
        before, after = record_version(name, from_level), record_version(name, to_level)
        if table.num_rows and after is not None and before != after:
            records = "1 record is" if table.num_rows == 1 else f"{table.num_rows} records are"
            message = f"{records} written in version {after} instead of {before}"
            yield _row(name, None, None, KEPT_IN_OLDER_VERSION, message)


def _features_at(table: pa.Table, to_level: int) -> pa.Table:
    """Return the features with ``metadata.version`` first, and without those that depend on a higher level of it."""
    others = {
        feature: level
        for feature, level in _feature_levels(table)
        if feature != METADATA_VERSION and levels.feature_level(feature, level).depends_on <= to_level
    }
    feature_levels = {METADATA_VERSION: to_level, **others}
    rows = [{"name": feature, "feature_level": level} for feature, level in feature_levels.items()]
    return pa.Table.from_pylist(rows, schemas.schema_of(FEATURES))


def _feature_levels(table: pa.Table) -> Iterator[tuple[str, int]]:
    return zip(table.column("name").to_pylist(), table.column("feature_level").to_pylist(), strict=True)


def _rows(kind: str, keys: pa.Array, field: str | None, outcome: str, message: str) -> pa.Table:
    texts = (kind, None, field, outcome, message)
    columns = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in texts]
    columns[1] = keys
    return pa.table(columns, schema=COLUMNS)


def _row(kind: str, key: str | None, field: str | None, outcome: str, message: str) -> pa.Table:
    return _rows(kind, pa.array([key], pa.string()), field, outcome, message)
