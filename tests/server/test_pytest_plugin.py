"""The fixtures for tests of others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import sys

import kraftlog
import pytest
from confluent_kafka import KafkaException, Producer


def test_nothing_is_imported():
    assert "kraftlog.server.broker" not in sys.modules
    assert "pyarrow" not in sys.modules


def test_a_record(kafka_broker, kafka_topic):
    assert kafka_topic == "test_a_record"
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"one")
    assert producer.flush(30) == 0
    assert list(kafka_broker.store.topics) == [kafka_topic]


def test_each_test_has_its_own(kafka_broker):
    assert kafka_broker.store.topics == {}


class TestUsers:
    @pytest.fixture
    def kafka_broker_options(self):
        return {"users": kraftlog.Users({"alice": "secret"})}

    def test_a_record(self, kafka_broker, kafka_topic):
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}
        options = {"bootstrap.servers": kafka_broker.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT"}
        producer = Producer(options | login)
        producer.produce(kafka_topic, b"one")
        assert producer.flush(30) == 0
        with pytest.raises(KafkaException):
            Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0}).list_topics(timeout=1)
"""


def test_the_fixtures(tmp_path: Path):
    path = tmp_path / "test_of_a_user.py"
    path.write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "kraftlog.pytest_plugin",
        str(path),
    ]
    # other plugins may import much, and a package that is installed would be found a second time
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_pytest_finds_them():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"kraftlog": "kraftlog.pytest_plugin"}
