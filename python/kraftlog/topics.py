"""Names of Kafka's internal topics."""

from __future__ import annotations

CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
REMOTE_LOG_METADATA = "__remote_log_metadata"
SCHEMAS = "_schemas"  # of a schema registry

COORDINATOR_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
INTERNAL_TOPICS = frozenset({*COORDINATOR_TOPICS, CLUSTER_METADATA})  # that no consumer subscribes to by a pattern
