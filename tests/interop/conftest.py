"""What the interop tests stand on: the JVM side built once, and a Kafka of its own for each test file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import jvm
import pytest
from kafka import Broker


@pytest.fixture(scope="session")
def java() -> Iterator[jvm.Jvm]:
    """Build the Java side once, or skip on a machine that has no Maven or no JDK."""
    reason = jvm.missing()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="kraftlog-interop-") as home:
        yield jvm.Jvm(Path(home))


@pytest.fixture(scope="module")
def broker(java: jvm.Jvm) -> Iterator[Broker]:
    """Format a Kafka and leave it stopped: a test runs it with ``with broker:``, as often as it likes."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        yield Broker(java, Path(home))
