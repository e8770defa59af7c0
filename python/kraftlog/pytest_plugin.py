"""Fixtures for tests that need a Kafka broker; nothing else is imported before one of them is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kraftlog.server.broker import Broker

_LONGEST_NAME = 100


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Return no options of ``kafka_broker``; a fixture of this name among the tests returns those that they need."""
    return {}


@pytest.fixture
def kafka_broker(kafka_broker_options: dict[str, Any]) -> Iterator[Broker]:
    """Return a broker of the test's own, in a temporary directory: see ``kraftlog.Broker``."""
    from kraftlog.server.broker import Broker

    with Broker(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> str:
    """Return the name of a new topic of the broker, which is made of the name of the test."""
    name = re.sub("[^a-zA-Z0-9._-]+", "-", request.node.name)[:_LONGEST_NAME].strip("-")
    kafka_broker.store.create_topic(name)
    return name
