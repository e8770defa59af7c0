"""What Kafka's own classes print: the lines in the files of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from kraftlog.metadata.record_types import named
from kraftlog.metadata.secrets import REDACTED
from kraftlog.metadata.uuids import MIGRATING, uuid_order, uuid_text

Row = Mapping[str, Any]

_ACL_NUMBERS = ("resource_type", "pattern_type", "operation", "permission_type")
_NO_END = 2**15 - 1  # of a range of versions


def double_text(value: float) -> str:
    """Return a double as Java prints it."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f") if value else str(value)
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{Decimal(repr(value)).adjusted()}"


def provenance_text(offset: int, epoch: int, timestamp: int) -> str:
    """Return what an image was made of: the last record's offset, its leader epoch and its time."""
    return f"offset {offset}, epoch {epoch}, time {_time_text(timestamp)}"


def _time_text(timestamp: int) -> str:
    try:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timestamp)
    except OverflowError:
        return f"{timestamp} ms"
    fraction = f".{moment.microsecond // 1000:03d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"


def partition_text(row: Row) -> str:
    """Return a PartitionRecord as Kafka's PartitionRegistration prints itself."""
    directories = row["directories"] or [MIGRATING] * len(row["replicas"])
    return (
        f"PartitionRegistration(replicas={_ids(row['replicas'])}, directories={_uuids(directories)}, "
        f"isr={_ids(row['isr'])}, removingReplicas={_ids(row['removing_replicas'])}, "
        f"addingReplicas={_ids(row['adding_replicas'])}, elr={_ids(row['eligible_leader_replicas'])}, "
        f"lastKnownElr={_ids(row['last_known_elr'])}, leader={row['leader']}, "
        f"leaderRecoveryState={named('PartitionRecord', 'leader_recovery_state', row['leader_recovery_state'])}, "
        f"leaderEpoch={row['leader_epoch']}, partitionEpoch={row['partition_epoch']})"
    )


def broker_text(row: Row) -> str:
    """Return a RegisterBrokerRecord as Kafka's BrokerRegistration prints itself."""
    cordoned = "null" if row["cordoned_log_dirs"] is None else _uuids(row["cordoned_log_dirs"])
    rack = "Optional.empty" if row["rack"] is None else f"Optional[{row['rack']}]"
    return (
        f"BrokerRegistration(id={row['broker_id']}, epoch={row['broker_epoch']}, "
        f"incarnationId={uuid_text(row['incarnation_id'])}, {_listeners_and_features(row)}, rack={rack}, "
        f"fenced={_java(row['fenced'])}, inControlledShutdown={_java(row['in_controlled_shutdown'])}, "
        f"isMigratingZkBroker={_java(row['is_migrating_zk_broker'])}, "
        f"directories={_uuids(sorted(row['log_dirs'], key=uuid_order))}, cordonedDirectories={cordoned})"
    )


def controller_text(row: Row) -> str:
    """Return a RegisterControllerRecord as Kafka's ControllerRegistration prints itself."""
    return (
        f"ControllerRegistration(id={row['controller_id']}, incarnationId={uuid_text(row['incarnation_id'])}, "
        f"zkMigrationReady={_java(row['zk_migration_ready'])}, {_listeners_and_features(row)})"
    )


def acl_text(row: Row) -> str:
    """Return an AccessControlEntryRecord as Kafka's StandardAcl prints itself."""
    names = {column: named("AccessControlEntryRecord", column, row[column]) for column in _ACL_NUMBERS}
    return (
        f"StandardAcl[resourceType={names['resource_type']}, resourceName={row['resource_name']}, "
        f"patternType={names['pattern_type']}, principal={row['principal']}, host={row['host']}, "
        f"operation={names['operation']}, permissionType={names['permission_type']}]"
    )


def scram_text(row: Row, *, show_secrets: bool) -> str:
    """Return a UserScramCredentialRecord as Kafka's shell prints it, its values redacted unless they are asked for."""
    fields = [
        *(("salt", row["salt"].hex()), ("storedKey", row["stored_key"].hex())),
        *(("serverKey", row["server_key"].hex()), ("iterations", row["iterations"])),
    ]
    shown = ", ".join(f"{name}={text if show_secrets else REDACTED}" for name, text in fields)
    return f"ScramCredentialData({shown})"


def delegation_token_text(row: Row, *, show_secrets: bool) -> str:
    """Return a DelegationTokenRecord as Kafka's shell prints it, all of it redacted unless it is asked for.

    The brackets are Kafka's.
    """
    names = ["token_id", "owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp"]
    texts = dict.fromkeys(names, REDACTED)
    if show_secrets:
        texts = {name: str(row[name]) for name in names} | {"renewers": " ".join(row["renewers"])}
    return (
        "DelegationTokenDatatokenId={token_id}(owner={owner}(tokenRequester={requester}(renewers={renewers}, "
        "issueTimestamp={issue_timestamp}, maxTimestamp={max_timestamp}), expiryTimestamp={expiration_timestamp}"
    ).format(**texts)


def _listeners_and_features(row: Row) -> str:
    listeners = ", ".join(map(_endpoint, sorted(row["end_points"], key=lambda point: str(point["name"]))))
    features = ", ".join(map(_feature, sorted(row["features"], key=lambda feature: str(feature["name"]))))
    return f"listeners=[{listeners}], supportedFeatures={{{features}}}"


def _endpoint(row: Row) -> str:
    protocol = named("RegisterBrokerRecord", "security_protocol", row["security_protocol"])
    return (
        f"Endpoint(listenerName='{row['name']}', securityProtocol={protocol}, host='{row['host']}', port={row['port']})"
    )


def _feature(row: Row) -> str:
    least, most = row["min_supported_version"], row["max_supported_version"]
    return f"{row['name']}: {least if least == most else f'{least}+' if most == _NO_END else f'{least}-{most}'}"


def _ids(ids: Iterable[int] | None) -> str:
    return f"[{', '.join(map(str, ids or ()))}]"


def _uuids(uuids: Iterable[bytes] | None) -> str:
    return f"[{', '.join(map(uuid_text, uuids or ()))}]"


def _java(value: bool) -> str:
    return "true" if value else "false"
