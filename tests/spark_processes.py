"""Processes of Spark beside the driver: a standalone cluster, and a server of Spark Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

START_LIMIT = 300.0  # seconds, on a busy machine
WORKERS = ("127.0.0.2", "127.0.0.3")  # a second attempt at a slow task runs only on another host


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Run a master and two workers with a core each; give the master's URL."""
    port = free_port()
    with ExitStack() as running:
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        running.enter_context(_spark_class(folder, "127.0.0.1", "deploy.master.Master", *arguments))
        _wait_for(port)
        for host in WORKERS:
            arguments = [
                "--host",
                host,
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                f"spark://127.0.0.1:{port}",
            ]
            running.enter_context(_spark_class(folder, host, "deploy.worker.Worker", *arguments))
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Run a server of Spark Connect with two cores; give its URL."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    arguments = ["--master", "local[2]", *options, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    with _spark_class(folder, "127.0.0.1", "deploy.SparkSubmit", *arguments, "spark-internal"):
        _wait_for(port)
        yield f"sc://127.0.0.1:{port}"


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def _spark_class(folder: Path, host: str, name: str, *arguments: str) -> Iterator[None]:
    """Run a class of Spark until the end of the block; what it says is in a file of the folder."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name}-{host}.log").open("wb") as said:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.{name}", *arguments]
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said) as process:
            try:
                yield
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_LIMIT
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
