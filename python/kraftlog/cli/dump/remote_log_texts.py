"""Metadata of remote segments as the classes of Kafka's remote storage print it."""

from __future__ import annotations

import base64
from typing import Any

SEGMENT_STATES = dict(
    enumerate(("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"))
)
PARTITION_STATES = dict(enumerate(("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")))
_SEGMENT, _UPDATE, _DELETE, _SNAPSHOT = range(4)  # types of records

Fields = dict[str, Any]


def text_of_remote(number: int, data: Fields) -> str:
    """Return a record of the type with a number.

    Raises
    ------
    ValueError
        With the message of the exception with which Kafka's class refuses it.
    """
    return _TEXTS[number](data)


def _segment(data: Fields) -> str:
    start, end = data["startOffset"], data["endOffset"]
    if start < 0:
        raise ValueError(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start:
        what = f"EndOffset for a remote segment cannot be less than startOffset = {start}"
        raise ValueError(f"Unexpected end offset = {end}. {what}")
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(data)}, startOffset={start}, endOffset={end}, "
        f"brokerId={data['brokerId']}, maxTimestampMs={data['maxTimestampMs']}, "
        f"eventTimestampMs={data['eventTimestampMs']}, {_of_segment(data)}}}"
    )


def _snapshot(data: Fields) -> str:
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={data['segmentId']}, startOffset={data['startOffset']}, "
        f"endOffset={data['endOffset']}, maxTimestampMs={data['maxTimestampMs']}, {_of_segment(data)}}}"
    )


def _of_segment(data: Fields) -> str:
    epochs = {one["leaderEpoch"]: one["offset"] for one in data["segmentLeaderEpochs"]}
    if not epochs:
        raise ValueError("segmentLeaderEpochs can not be null or empty")
    return (
        f"segmentLeaderEpochs={{{', '.join(f'{epoch}={epochs[epoch]}' for epoch in sorted(epochs))}}}, "
        f"segmentSizeInBytes={data['segmentSizeInBytes']}, customMetadata={_custom(data)}, "
        f"state={_state(data)}, txnIdxEmpty={'true' if data.get('txnIndexEmpty') else 'false'}"
    )


def _update(data: Fields) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(data)}, customMetadata={_custom(data)}, "
        f"state={_state(data)}, eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    )


def _delete(data: Fields) -> str:
    number = data["remotePartitionDeleteState"]
    if number not in PARTITION_STATES:
        raise ValueError("null")
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_partition(data)}, state={PARTITION_STATES[number]}, "
        f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    )


def _state(data: Fields) -> str:
    number = data["remoteLogSegmentState"]
    if number not in SEGMENT_STATES:
        raise ValueError("state can not be null")
    return SEGMENT_STATES[number]


def _custom(data: Fields) -> str:
    custom = data["customMetadata"]
    if custom is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(base64.b64decode(custom))} bytes}}]"


def _segment_id(data: Fields) -> str:
    found = data["remoteLogSegmentId"]
    return f"RemoteLogSegmentId{{topicIdPartition={_partition(found)}, id={found['id']}}}"


def _partition(data: Fields) -> str:
    found = data["topicIdPartition"]
    return f"{found['id']}:{found['name']}-{found['partition']}"


_TEXTS = {_SEGMENT: _segment, _UPDATE: _update, _DELETE: _delete, _SNAPSHOT: _snapshot}
