"""A quiet local Spark session, for the demonstration and for tests."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from kraftlog.spark.java import check_user_name, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOCKET_TIMEOUT_SECONDS = 600


def local_session(master: str = "local[2]", **settings: str) -> SparkSession:
    """Start Spark in this process, with the Java of the ``java`` extra where the machine has none.

    Parameters
    ----------
    master : str
        Such as ``local[2]``, or ``local-cluster[2,1,1024]`` for executors in processes of their own.
    **settings
        Spark's settings, with ``_`` for ``.`` in their names.

    Raises
    ------
    RuntimeError
        When there is no Java, or no name of the user.
    """
    check_user_name()
    use_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # on a busy machine a worker takes longer than the default of 15 s to start or answer
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", str(SOCKET_TIMEOUT_SECONDS))  # for Spark's processes
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master(master).appName("kraftlog")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.authenticate.socketTimeout": f"{SOCKET_TIMEOUT_SECONDS}s",
    }
    for name, value in (quiet | {key.replace("_", "."): value for key, value in settings.items()}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
