"""Kafka's names for the numbers in metadata records."""

from __future__ import annotations

from collections.abc import Mapping

OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
PERMISSION_TYPES = ("UNKNOWN", "ANY", "DENY", "ALLOW")
RECOVERY_STATES = ("RECOVERED", "RECOVERING")
RESOURCE_TYPES = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CONFIG_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

_OF_MESSAGES: dict[tuple[str, str], Mapping[int, str]] = {
    ("ConfigRecord", "resource_type"): CONFIG_RESOURCE_TYPES,
    ("AccessControlEntryRecord", "resource_type"): dict(enumerate(RESOURCE_TYPES)),
    ("AccessControlEntryRecord", "pattern_type"): dict(enumerate(PATTERN_TYPES)),
    ("AccessControlEntryRecord", "operation"): dict(enumerate(OPERATIONS)),
    ("AccessControlEntryRecord", "permission_type"): dict(enumerate(PERMISSION_TYPES)),
    ("UserScramCredentialRecord", "mechanism"): SCRAM_MECHANISMS,
    ("PartitionRecord", "leader_recovery_state"): dict(enumerate(RECOVERY_STATES)),
    ("RegisterBrokerRecord", "security_protocol"): dict(enumerate(SECURITY_PROTOCOLS)),
    ("RegisterControllerRecord", "security_protocol"): dict(enumerate(SECURITY_PROTOCOLS)),
}


def named(name: str, column: str, number: int) -> int | str:
    """Return Kafka's name for a number in a field of a type of record; the number where it has none.

    Examples
    --------
    >>> named("ConfigRecord", "resource_type", 2), named("PartitionRecord", "leader", 2)
    ('TOPIC', 2)
    """
    return _OF_MESSAGES.get((name, column), {}).get(number, number)
