"""The records that concern topics and partitions, as columns that kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.metadata.record_types import PARTITIONS, TOPICS

OF_TOPIC, OF_REMOVAL, OF_PARTITION, OF_CHANGE, OF_CLEARING = 0, 1, 2, 3, 4
TOPIC, REMOVE_TOPIC, PARTITION = TOPICS.name, TOPICS.remover, PARTITIONS.name
PARTITION_CHANGE, CLEAR_ELR = "PartitionChangeRecord", "ClearElrRecord"
TYPES = (TOPIC, REMOVE_TOPIC, PARTITION, PARTITION_CHANGE, CLEAR_ELR)

UNKNOWN_TOPIC, UNKNOWN_PARTITION, BAD_DIRECTORIES, BAD_RECOVERY_STATE = 1, 2, 3, 4
EVERY_TOPIC = -1

Ints = npt.NDArray[np.int64]


class Partitions(NamedTuple):
    """Columns of PartitionRecord or PartitionChangeRecord.

    ``scalars`` has the columns of ``Slots.state``, int32[rows, 6]. The bits of ``given`` say which lists are not null;
    ``id_ends`` is where the lists of broker ids of a row start and end in ``ids``, int32[lists, rows + 1].
    """

    offsets: Ints
    topic_ids: npt.NDArray[np.uint64]
    scalars: npt.NDArray[np.int32]
    given: npt.NDArray[np.uint8]
    id_ends: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    uuid_ends: npt.NDArray[np.int32]
    uuids: npt.NDArray[np.uint64]


class Topics(NamedTuple):
    """Columns of TopicRecord and RemoveTopicRecord; ``cleared`` is the number that a name has in ``Clearings``."""

    offsets: Ints
    topic_ids: npt.NDArray[np.uint64]
    first_name: int
    cleared: Ints
    removal_offsets: Ints
    removal_ids: npt.NDArray[np.uint64]


class Clearings(NamedTuple):
    """Columns of ClearElrRecord: which name, or ``EVERY_TOPIC``; and the topics that have one of the names."""

    offsets: Ints
    names: Ints
    candidates: Ints  # slot, number of the topic's name, number of the name here; with room for topics that come
