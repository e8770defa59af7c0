"""Types of the records that concern topics and partitions, in the order in which the core numbers them."""

from kraftlog.metadata.record_types import PARTITIONS, TOPICS

TOPIC, REMOVE_TOPIC, PARTITION = TOPICS.name, TOPICS.remover, PARTITIONS.name
PARTITION_CHANGE, CLEAR_ELR = "PartitionChangeRecord", "ClearElrRecord"
TYPES = (TOPIC, REMOVE_TOPIC, PARTITION, PARTITION_CHANGE, CLEAR_ELR)
