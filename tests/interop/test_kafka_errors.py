"""The table of Kafka's errors, and Kafka's own."""

from __future__ import annotations

import json

from jvm import Jvm

from kraftlog.errors import KAFKA_ERRORS, KafkaError
from kraftlog.protocol.error_code import ErrorCode


def test_numbers_and_whether_clients_try_again(java: Jvm) -> None:
    """Each error of ours has Kafka's number."""
    kafkas = {}
    for line in map(json.loads, java.run("KafkaErrors")):
        kafkas[line["name"]] = KafkaError(line["code"], is_retriable=line["is_retriable"])
    assert len(kafkas) > 100
    assert {name: kafkas[name] for name in KAFKA_ERRORS} == KAFKA_ERRORS
    assert {one.name: kafkas[one.name].code for one in ErrorCode} == dict(ErrorCode.__members__)
