"""What the client of a broker makes of what librdkafka says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from kraftlog.broker.client import Client
from kraftlog.broker.errors import NotDeliveredError
from kraftlog.broker.stretch import Stretch


class Producer:
    """Takes a record, then fails the transaction; the report of the record comes some polls later."""

    def __init__(self, polls: int) -> None:
        self.polls, self.marks = polls, list[Any]()

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, on_delivery: Any, **_: Any) -> None:
        if self.marks:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.marks.append(on_delivery)

    def poll(self, seconds: float) -> int:
        self.polls -= 1
        if self.polls:
            return 0
        self.marks[0](KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        return 1


@pytest.mark.parametrize("polls", [1, 2, 5])
def test_a_record_that_is_refused_is_named_also_when_its_report_comes_late(polls: int):
    """In a transaction that has failed librdkafka takes no record, and says "Erroneous state" alone."""
    client = Client("127.0.0.1:1", "name", {}, timeout=1)
    client._producer = Producer(polls)
    rows = pa.record_batch(
        {
            "offset": pa.array([41, 42]),
            "timestamp_ms": pa.array([5, 6]),
            "key": pa.array([b"a", b"b"]),
            "value": pa.array([b"large", b"small"]),
            "headers": pa.array([[], []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )
    with pytest.raises(NotDeliveredError, match=r"orders-0 did not accept the record of offset 41: .*too large"):
        Stretch(client, ("orders", 0), is_exact=True).send(rows, np.array([10, 10]))
