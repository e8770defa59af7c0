"""Records of ``__consumer_offsets`` about classic groups: from a group to key and value, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import CONSUMER_OFFSETS
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.one_message import decode_message, encode_message
from kraftlog.server.group import Group, GroupState, Member

GROUP_METADATA = "GroupMetadata"
_PREFIX_BYTES = len(int16_prefix(0))
_GROUP_METADATA_VERSION = 3  # the last that releases before 4.1 can read (KIP-915)
_TYPES = BUILT_IN.formats[CONSUMER_OFFSETS].types
_API_KEYS = {one.name: api_key for api_key, one in _TYPES.items()}


def record_key(name: str, **fields: str) -> bytes:
    """Return the key of a record.

    Parameters
    ----------
    name : str
        Name of its type, such as ``GroupMetadata``.
    **fields
    """
    return int16_prefix(_API_KEYS[name]) + encode_message(f"{name}Key", 0, fields)


def record_value(name: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return the value of a record."""
    return int16_prefix(version) + encode_message(f"{name}Value", version, fields)


def decoded_records(records: Mapping[bytes, bytes]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the type of each record, and the fields of its key and value; unknown types are left out."""
    for key, value in records.items():
        record_type = _TYPES.get(int.from_bytes(key[:_PREFIX_BYTES], "big", signed=True))
        if record_type is not None and record_type.key is not None and record_type.value is not None:
            version = int.from_bytes(value[:_PREFIX_BYTES], "big", signed=True)
            yield (
                record_type.name,
                decode_message(record_type.key, 0, key[_PREFIX_BYTES:]),
                decode_message(record_type.value, version, value[_PREFIX_BYTES:]),
            )


def group_record(group: Group, timestamp_ms: int) -> KeyAndValue:
    """Return the record of a group that is stable or empty."""
    fields = {
        "protocol_type": group.protocol_type or "",
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "current_state_timestamp": timestamp_ms,
        "members": [
            {
                "member_id": one.member_id,
                "group_instance_id": one.group_instance_id,
                "client_id": one.client_id,
                "client_host": one.client_host,
                "rebalance_timeout": one.rebalance_timeout_ms,
                "session_timeout": one.session_timeout_ms,
                "subscription": one.protocols.get(group.protocol or "", b""),
                "assignment": one.assignment,
            }
            for one in group.members.values()
        ],
    }
    return KeyAndValue(group_key(group.group_id), record_value(GROUP_METADATA, _GROUP_METADATA_VERSION, fields))


def group_key(group_id: str) -> bytes:
    """Return the key of the record of a classic group."""
    return record_key(GROUP_METADATA, group=group_id)


def group_of(group_id: str, value: Mapping[str, Any]) -> Group:
    """Return a group as its record describes it; the sessions of its members have not begun."""
    protocol = value["protocol"]
    members = [
        Member(
            one["member_id"],
            one["group_instance_id"],
            one["client_id"],
            one["client_host"],
            one["session_timeout"],
            one["session_timeout"] if one["rebalance_timeout"] < 0 else one["rebalance_timeout"],
            {protocol or "": bytes(one["subscription"])},
            bytes(one["assignment"]),
        )
        for one in value["members"]
    ]
    return Group(
        group_id,
        GroupState.STABLE if members else GroupState.EMPTY,
        value["generation"],
        value["protocol_type"] or None,
        protocol,
        value["leader"],
        {one.member_id: one for one in members},
    )
