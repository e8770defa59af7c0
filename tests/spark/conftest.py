"""One local Spark session for all tests of a module."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlog.spark import register
from kraftlog.spark.session import local_session


@pytest.fixture(scope="session")
def no_warnings_of_spark() -> Iterator[None]:
    """Spark's own modules warn about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def spark(no_warnings_of_spark: None, tmp_path_factory: pytest.TempPathFactory):
    """``local[2]``, with the format registered."""
    session = local_session(spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")))
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def cluster(no_warnings_of_spark: None, tmp_path_factory: pytest.TempPathFactory):
    """Two executors in processes of their own.

    They write into SPARK_HOME/work, so SPARK_HOME is a folder of links that can be thrown away.
    """
    import pyspark

    real = Path(pyspark.__file__).parent
    home = tmp_path_factory.mktemp("spark-home")
    for name in ("bin", "jars", "sbin", "python", "data"):
        if (real / name).exists():
            (home / name).symlink_to(real / name)
    (home / "RELEASE").write_text("")
    before = os.environ.get("SPARK_HOME")
    os.environ["SPARK_HOME"] = str(home)
    session = local_session("local-cluster[2,1,1024]", spark_executor_memory="1g")
    register(session)
    yield session
    session.stop()
    if before is None:
        del os.environ["SPARK_HOME"]
    else:
        os.environ["SPARK_HOME"] = before
