"""Make ``tests/golden/unregistered``: the metadata log of a release in which a controller was unregistered.

A broker that is a controller as well, and a second controller, run on 127.0.0.1 with directories of their own. The
second one registers itself and is killed; then its registration is taken away. ``image.jsonl`` has the image that
Kafka's own classes make of the log, ``dump.txt`` what kafka-dump-log prints of it. Run
``python tests/interop/releases/unregister.py 4.4.0 tests/golden/unregistered``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from make import CLUSTER, HERE, class_path, free_ports, wait_for

import kraftlog

LIMIT = 60
JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
QUORUM = "controller.quorum.bootstrap.servers=127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\n"
NODE = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
log.dirs={log}
offsets.topic.replication.factor=1
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
SECOND = """
process.roles=controller
node.id=2
listeners=CONTROLLER://127.0.0.1:{second}
log.dirs={log}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


def make(release: str, target: Path, home: Path) -> None:
    """Run both controllers, kill the second one and unregister it."""
    java = [*JAVA, f"-Dkafka.logs.dir={home}", "-cp", class_path(release)]
    broker, controller, second = free_ports(3)
    ports = {"broker": broker, "controller": controller, "second": second}
    nodes = []
    for name, properties, option in (("1", NODE, "--standalone"), ("2", SECOND, "--no-initial-controllers")):
        file = home / f"{name}.properties"
        file.write_text((properties + QUORUM).format(log=home / name, **ports))
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(file), option]
        subprocess.run([*java, *tool], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
        nodes.append([*java, "kafka.Kafka", str(file)])
    folder = home / "1" / "__cluster_metadata-0"
    client = [*java, str(HERE / "Unregister.java")]
    address = f"127.0.0.1:{broker}"
    with running(nodes[0], broker, home / "1.out"):
        with running(nodes[1], second, home / "2.out"):
            deadline = time.monotonic() + LIMIT
            while 2 not in registered(folder):
                assert time.monotonic() < deadline, "the second controller does not register itself"
                time.sleep(0.2)
            subprocess.run([*client, "fill", address], check=True, timeout=LIMIT)
        time.sleep(1)
        subprocess.run([*client, "unregister", address, "2"], check=True, timeout=LIMIT)
    shutil.rmtree(target, ignore_errors=True)
    copy = target / "log" / folder.name
    copy.mkdir(parents=True)
    for path in [*folder.glob("*.log"), *folder.glob("*.checkpoint"), folder / "partition.metadata"]:
        shutil.copyfile(path, copy / path.name)
    (log,) = copy.glob("*.log")
    image = subprocess.run([*client, "image", str(log)], check=True, stdout=subprocess.PIPE, timeout=LIMIT).stdout
    (target / "image.jsonl").write_bytes(image)
    tool = [*JAVA, "-cp", class_path(release, "kafka-tools"), "org.apache.kafka.tools.DumpLogSegments"]
    tool += ["--cluster-metadata-decoder", "--files", log.name]
    dump = subprocess.run(tool, check=True, stdout=subprocess.PIPE, timeout=LIMIT, cwd=copy).stdout
    (target / "dump.txt").write_bytes(dump)


def registered(folder: Path) -> set[int]:
    """Return the controllers that have registered themselves."""
    rows = kraftlog.open(folder).messages(["controller_id"], type="RegisterControllerRecord").to_table()
    return set(rows["controller_id"].to_pylist())


@contextmanager
def running(command: list[str], port: int, output: Path) -> Iterator[None]:
    """Run a node, and kill it at the end."""
    with output.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(port, process)
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Make the log of one release."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-release-") as home:
        try:
            make(sys.argv[1], Path(sys.argv[2]), Path(home))
        except BaseException:
            print(*((Path(home) / f"{name}.out").read_text()[-3000:] for name in "12"), sep="\n", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
