"""What the interop tests stand on: the JVM side built once, and a Kafka of its own for each test file."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import jvm
import pytest
import spark_connector
from audited import Audits
from kafka_broker import Broker, Node
from random_rounds import Rounds
from sink_driver import MASTER

from kraftlog.spark import register
from kraftlog.spark.session import local_session

sys.path.append(str(Path(__file__).parent / "releases"))  # where files of releases are made
from make import class_path

os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
)  # of drivers as well; jobs are short


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what says how long random logs are compared with Kafka, and which."""
    group = parser.getgroup("random logs")
    group.addoption("--random-seconds", type=float, default=2.0, help="how long each test of random logs runs")
    group.addoption("--random-seed", type=int, default=0, help="the number of the first log")
    group.addoption("--boots", type=int, default=1, help="how many clusters start from random cuts of backups")
    group.addoption("--kafka-release", help="a release whose classes run, instead of those of pom.xml")
    group.addoption("--audits", type=Path, help="a file for the findings of audits of all nodes, a line each")
    group.addoption("--random-counts", type=Path, help="a file for what was drawn and found, a line each minute")


@pytest.fixture(scope="session")
def audits(request: pytest.FixtureRequest) -> Iterator[Audits]:
    """Audit the log directories of all nodes, and fail at the end where a healthy one has findings."""
    every = Audits(request.config.getoption("--audits"))
    Node.observers.append(every)
    yield every
    Node.observers.remove(every)
    assert not every.findings, "\n".join([str(dict(every.counts)), *every.findings])


@pytest.fixture(autouse=True, scope="module")
def of_test(audits: Audits, request: pytest.FixtureRequest) -> None:
    """Name the test of the findings."""
    audits.test = request.node.nodeid
    audits.is_of_healthy = not hasattr(request.module, "NOT_AUDITED")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Rounds:
    """Return random cases for as long as the options say."""
    option = request.config.getoption
    return Rounds(option("--random-seconds"), option("--random-seed"), option("--random-counts"))


@pytest.fixture(scope="session")
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jvm.Jvm]:
    """Build the Java side once for all workers, or skip on a machine that has no Maven or no JDK."""
    reason = jvm.missing()
    if reason is not None:
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if hasattr(request.config, "workerinput") else base) / "java"
    home.mkdir(exist_ok=True)
    release = request.config.getoption("--kafka-release")
    with jvm.Jvm(home, kafka=class_path(release) if release else None) as java:
        yield java


@pytest.fixture(scope="module")
def broker(java: jvm.Jvm) -> Iterator[Broker]:
    """Format a Kafka and leave it stopped: a test runs it with ``with broker:``, as often as it likes."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        yield Broker(java, Path(home))


@pytest.fixture(scope="session")
def spark(java: jvm.Jvm, tmp_path_factory: pytest.TempPathFactory):
    """Return a session with the formats ``kafka`` and ``kraftlog``: a JVM sees only the jars with which it starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own modules warn about themselves
        folder = tmp_path_factory.mktemp("spark")
        session = local_session(
            MASTER, spark_jars=spark_connector.jars(folder), spark_sql_warehouse_dir=str(folder / "warehouse")
        )
        register(session)
        yield session
        session.stop()
