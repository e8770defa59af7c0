"""Golden logs counted by kraftlog, and the same counts by Kafka's answers and the first bytes of keys and values."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.coordinator.message_counts import count_messages
from kraftlog.coordinator.record_counts import RecordCounts
from kraftlog.messages.catalog import BUILT_IN, format_of_topic
from kraftlog.messages.reader import MessageReader

ANSWERS = {
    "__consumer_offsets": "consumer_offsets.jsonl",
    "__transaction_state": "transaction_state.jsonl",
    "__share_group_state": "share_group_state.jsonl",
    "__cluster_metadata": "metadata_records.jsonl",
}
UNKNOWN_TYPE = "UnknownRecordTypeException"
DAMAGED = "Could not read record"

Line = dict[str, Any]
TOPICS = sorted(
    (answer.parts[-3], topic)
    for topic, name in ANSWERS.items()
    if topic != "__cluster_metadata"
    for answer in GOLDEN.glob(f"*/expected/{name}*")
)
# type, version of the value (None: a tombstone, or no version), whether it is a tombstone, whether it is damaged
Kind = tuple[int | None, int | None, bool, bool]


def counts(scenario: str, topic: str) -> dict[tuple[str, int | None], RecordCounts]:
    """Count the records of a topic by reading the log."""
    format_name = format_of_topic(topic)
    assert format_name is not None
    record_format = BUILT_IN.formats[format_name]
    reader = MessageReader(record_format)
    found: dict[tuple[str, int | None], RecordCounts] = {}
    for folder in sorted((GOLDEN / scenario / "log").glob(f"{topic}-*")):
        counted = found.setdefault((topic, _partition(str(folder))), RecordCounts())
        for batch in kraftlog.open(folder).records(columns=["key", "value", "offset"], batch_rows=7).batches():
            keys = None if topic == "__cluster_metadata" else batch.column("key")
            messages = reader.read(keys, batch.column("value"))
            count_messages(counted, record_format, messages, np.asarray(batch.column("offset")))
    return found


def answers(scenario: str, topic: str) -> dict[int, list[tuple[int, Line, Kind]]]:
    """Return for each partition offset, Kafka's answer, and what it and the bytes say of the record."""
    expected = GOLDEN / scenario / "expected"
    raw = {(line["file"], line["offset"]): line for line in lines(expected / "records.jsonl")}
    found: dict[int, list[tuple[int, Line, Kind]]] = {}
    for answer in lines(expected / ANSWERS[topic]):
        record = raw[answer["file"], answer["offset"]]
        if record["control_type"] is not None:
            continue
        kinds = found.setdefault(_partition(Path(answer["file"]).parts[0]), [])
        kinds.append((answer["offset"], answer, _kind(answer, record)))
    return found


def by_kind(rows: list[tuple[int, Line, Kind]]) -> dict[Kind, tuple[int, int]]:
    """Return how many records there are of each kind, and the first offset."""
    counted = Counter(kind for _, _, kind in rows)
    return {kind: (count, min(offset for offset, _, other in rows if other == kind)) for kind, count in counted.items()}


def _kind(answer: Line, record: Line) -> Kind:
    key, value = record["key"], record.get("value", "")
    api_key = int.from_bytes(bytes.fromhex(key)[:2], signed=True) if key is not None and len(key) >= 4 else None
    if api_key is None:
        return None, None, False, False
    if "value" in record and value == "":
        return api_key, None, False, False
    if answer.get("error_message", "").startswith(DAMAGED):
        return api_key, None, False, True
    if "value" in record and value is None:
        return api_key, None, True, False
    if answer.get("value"):
        return api_key, answer["value"]["version"], False, False
    refused = re.search(r"unknown record version (\d+)", answer.get("error_message", ""))
    if refused is not None:
        return api_key, int(refused[1]), False, False
    version = int.from_bytes(bytes.fromhex(value)[:2], signed=True) if len(value) >= 4 else -1
    return api_key, version if version >= 0 else None, False, False


def _partition(name: str) -> int:
    return int(name.rpartition("-")[2])
