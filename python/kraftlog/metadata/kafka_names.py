"""Kafka's names: of features, and for the numbers in metadata records."""

from __future__ import annotations


def _numbered(*names: str) -> dict[int, str]:
    return dict(enumerate(names))


KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"

OPERATIONS = _numbered(
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
PATTERN_TYPES = _numbered("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
PERMISSION_TYPES = _numbered("UNKNOWN", "ANY", "DENY", "ALLOW")
RECOVERY_STATES = _numbered("RECOVERED", "RECOVERING")
RESOURCE_TYPES = _numbered(
    "UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"
)
SECURITY_PROTOCOLS = _numbered("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CONFIG_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4  # of CONFIG_RESOURCE_TYPES
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
