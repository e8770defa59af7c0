"""One local Spark session for all tests of a module."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_daemon
from kraftlog.spark import register
from kraftlog.spark.session import local_session
from spark_processes import standalone_cluster


@pytest.fixture(scope="session")
def no_warnings_of_spark() -> Iterator[None]:
    """Spark's own modules warn about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


QUICK_TO_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # jobs are short
TESTS = str(Path(spark_daemon.__file__).parent)
DAEMON = {"spark.python.daemon.module": spark_daemon.__name__, "spark.executorEnv.PYTHONPATH": TESTS}


class Sessions:
    """The one Spark session that a process can have: modules that ask for the same master share it."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self._master = ""
        self._session: SparkSession | None = None

    def get(self, master: str, **settings: str) -> SparkSession:
        """Return the session of a master; it takes the place of one of another master."""
        if self._session is None or self._master != master:
            self.stop()
            os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_TO_START)
            settings |= DAEMON | {"spark_sql_warehouse_dir": str(self._warehouse)}
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTHONPATH", TESTS, prepend=os.pathsep)  # of what is not in an executor of a cluster
                self._session = local_session(master, **settings)
            self._master = master
        return self._session

    def lend(self, master: str) -> Iterator[SparkSession]:
        """Lend a session with the format registered; what a module changes of its settings is set back."""
        session = self.get(master)
        register(session)
        before = dict(session.conf.getAll)
        yield session
        for name in session.conf.getAll.keys() - before.keys():
            session.conf.unset(name)
        for name, value in before.items():
            if session.conf.get(name) != value:
                session.conf.set(name, value)

    def stop(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.stop()
            self._session = None


@pytest.fixture(scope="session")
def sessions(no_warnings_of_spark: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """Return what starts the sessions of this process."""
    sessions = Sessions(tmp_path_factory.mktemp("warehouse"))
    yield sessions
    sessions.stop()


@pytest.fixture(scope="module")
def spark(sessions: Sessions) -> Iterator[SparkSession]:
    """``local[2]``, with the format registered."""
    yield from sessions.lend("local[2]")


@pytest.fixture(scope="module")
def retrying_spark(sessions: Sessions) -> Iterator[SparkSession]:
    """Two threads, which try a task up to four times."""
    yield from sessions.lend("local[2,4]")


@pytest.fixture(scope="module")
def cluster(sessions: Sessions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two executors in processes of their own, as on two hosts, and second attempts at slow tasks."""
    sessions.stop()
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as master:
        speculation = {"": "true", ".quantile": "0.5", ".multiplier": "1.5"}
        settings = {f"spark.speculation{name}": value for name, value in speculation.items()}
        settings |= {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "1g"}
        settings["spark.buffer.size"] = "512"  # workers send rows on at once, before they die or hang
        session = sessions.get(master, **settings)
        register(session)
        yield session
        sessions.stop()
