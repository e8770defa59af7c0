"""Make ``tests/golden/releases``: directories that brokers of other releases wrote, and what they said of them.

A broker of the release runs on 127.0.0.1 with a directory of its own, one at a time. It is filled, stopped cleanly
(``clean``), filled on and killed with -9 (``killed``), and started again: ``recovered`` holds the files that it made of
the killed ones. Run ``python tests/interop/releases/make.py 3.9.1 tests/golden/releases``.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SCALA = {"0.10.2.2": "2.11", "1.1.1": "2.12"}
EXPIRING = ("2.8.2",)  # with transactional ids that expire soon, and in releases before 3.4 producers with them
CLIENT = "3.9.1"
TOOL = "4.3.0"  # of which kraftlog dump prints the text
CLUSTER = "a3JhZnRsb2ctcmVsZWFzZQ"
OPENED = ["java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch", "java.base/java.util"]
LARGEST_INDEX = 4080  # of whole entries; preallocated files are cut to this: 10 MiB of zeros are of no use
COMMON = """
listeners={listeners}
log.dirs={log}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.segment.bytes=4096
offsets.retention.check.interval.ms=1000
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.segment.bytes=4096
transactional.id.expiration.ms={expiration}
transaction.remove.expired.transaction.cleanup.interval.ms=1000
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.index.size.max.bytes=1024
log.segment.delete.delay.ms=500
log.cleaner.enable=true
log.cleaner.backoff.ms=300
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
"""
ZOOKEEPER = "broker.id=1\nzookeeper.connect=127.0.0.1:{port}\nzookeeper.session.timeout.ms=4000\n"
LOG4J = """
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
"""
KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{port}
controller.listener.names=CONTROLLER
"""


class Release:
    """A release's class path, and its broker below ``home``."""

    def __init__(self, version: str, home: Path) -> None:
        self.version = version
        self.home = home
        self.log = home / "log"
        self.expiration_ms = 40_000 if version in EXPIRING else 3_600_000
        self.is_kraft = int(version.split(".")[0]) >= 3
        self._class_paths = {name: class_path(name) for name in {version, CLIENT, TOOL}}
        self.port, other = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{self.port}"
        if self.is_kraft:
            listeners += f",CONTROLLER://127.0.0.1:{other}"
        mode = (KRAFT if self.is_kraft else ZOOKEEPER).format(port=other)
        self.properties = home / "server.properties"
        self.properties.write_text(
            COMMON.format(listeners=listeners, log=self.log, expiration=self.expiration_ms) + mode
        )
        self.zookeeper = home / "zookeeper.properties"
        ticks = f"tickTime=1000\nclientPort={other}\nclientPortAddress=127.0.0.1\n"
        self.zookeeper.write_text(f"dataDir={home}/zookeeper\n{ticks}")
        self._log4j = home / "log4j.properties"
        self._log4j.write_text(LOG4J)
        self._zookeeper_port = other

    def java(self, *arguments: str, version: str | None = None) -> list[str]:
        """Return a command line with the class path of a release."""
        opened = [word for module in OPENED for word in ("--add-opens", f"{module}=ALL-UNNAMED")]
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", f"-Dkafka.logs.dir={self.home}"]
        logging += [f"-Dlog4j.configuration=file:{self._log4j}", "-Dzookeeper.jmx.log4j.disable=true"]
        heap = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *heap, *opened, *logging, "-cp", self._class_paths[version or self.version], *arguments]

    def format(self) -> None:
        """Format the log directory, where a release has that."""
        if self.is_kraft:
            tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self.properties)]
            subprocess.run(self.java(*tool), check=True, stdout=subprocess.DEVNULL, timeout=60)

    @contextmanager
    def coordination(self) -> Iterator[None]:
        """ZooKeeper, where a release needs one."""
        if self.is_kraft:
            yield
            return
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with self._process("zookeeper.out", self._zookeeper_port, main, str(self.zookeeper)) as process:
            yield
            process.terminate()

    @contextmanager
    def broker(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the broker; the caller stops it."""
        with self._process("broker.out", self.port, "kafka.Kafka", str(self.properties)) as process:
            yield process

    @contextmanager
    def _process(self, output: str, port: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        with (self.home / output).open("ab") as out:
            process = subprocess.Popen(self.java(*arguments), stdout=out, stderr=out)
        try:
            wait_for(port, process)
            yield process
            process.wait(60)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def workload(self, *step: str) -> str:
        """Run a step of Workload.java."""
        arguments = [str(HERE / "Workload.java"), f"127.0.0.1:{self.port}", self.version, *step]
        command = self.java(*arguments, version=CLIENT)
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=300).stdout

    def dump(self, folder: Path, version: str) -> str:
        """Return what kafka-dump-log of a release prints of the files of a log directory, each by itself."""
        kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
        files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.suffix in kinds]
        return self._dump(folder, files, version)

    def _dump(self, folder: Path, files: list[str], version: str) -> str:
        """Dump many files at a time, since a JVM takes a second; one by one when the tool ends at one of them."""
        package = "org.apache.kafka" if version == TOOL else "kafka"
        tool = [f"{package}.tools.DumpLogSegments", "--print-data-log", "--files", ",".join(files)]
        done = subprocess.run(
            self.java(*tool, version=version), capture_output=True, timeout=120, cwd=folder, check=False
        )
        if done.returncode and len(files) > 1:
            middle = len(files) // 2
            return self._dump(folder, files[:middle], version) + self._dump(folder, files[middle:], version)
        text = done.stdout.decode("utf-8", "replace")
        if version == TOOL and done.stderr.strip():
            text += f"stderr: {done.stderr.decode('utf-8', 'replace')}\n"
        return text.replace(f"{folder.absolute()}/", "")


def main() -> None:
    """Make the scenario of one release."""
    version, target = sys.argv[1], Path(sys.argv[2]) / sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="kraftlog-release-") as home:
        release = Release(version, Path(home))
        try:
            make(release, target)
        except BaseException:
            print((release.home / "broker.out").read_text()[-5000:], file=sys.stderr)
            raise


def make(release: Release, target: Path) -> None:
    """Fill, stop, fill, kill and start again."""
    shutil.rmtree(target, ignore_errors=True)
    release.format()
    with release.coordination():
        with release.broker() as process:
            release.workload("create")
            if release.version in EXPIRING:
                release.workload("expire")
                time.sleep(44)  # until the id has expired
            release.workload("fill", "1")
            time.sleep(4)  # until the cleaner has been there
            answers(release, target / "clean")
            process.terminate()
        keep(release.log, target / "clean" / "log")
        with release.broker() as process:
            release.workload("fill", "2")
            time.sleep(2)
            os.kill(process.pid, signal.SIGKILL)
        keep(release.log, target / "killed" / "log")
        time.sleep(0 if release.is_kraft else 8)  # until its session is over
        with release.broker() as process:
            answers(release, target / "killed")  # a broker listens before it has loaded its logs
            keep(release.log, target / "killed" / "recovered")
            process.terminate()
    for path in (target / "killed" / "recovered").glob("*/*.log"):
        before = target / "killed" / "log" / path.relative_to(target / "killed" / "recovered")
        if before.exists() and before.read_bytes() == path.read_bytes():
            path.unlink()
    for state in ("clean", "killed"):
        for name, tool in (("dump_own.txt.gz", release.version), ("dump.txt.gz", TOOL)):
            zipped(target / state / "answers" / name, release.dump(target / state / "log", tool))


def answers(release: Release, target: Path) -> None:
    """Keep what the running broker says."""
    zipped(target / "answers" / "answers.jsonl.gz", release.workload("answers"))


def zipped(path: Path, text: str) -> None:
    """Write a gzipped file without a time in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def keep(log: Path, target: Path) -> None:
    """Copy a log directory."""
    shutil.copytree(log, target, ignore=shutil.ignore_patterns(".lock"))
    for path in target.rglob("*index"):
        if path.stat().st_size > LARGEST_INDEX:
            os.truncate(path, LARGEST_INDEX)


def class_path(version: str, artifact: str | None = None) -> str:
    """Return the class path of a release, or of another artifact than the broker, which Maven resolves once."""
    folder = Path(tempfile.gettempdir()) / "kraftlog-class-paths"
    if version == TOOL and artifact is None:
        artifact = "kafka-tools"
    path = folder / (f"{version}-{artifact}" if artifact else version)
    if not path.exists():
        folder.mkdir(exist_ok=True)
        maven = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), f"-Dkafka.version={version}"]
        maven += [
            f"-Dscala.version={SCALA.get(version, '2.13')}",
            *([f"-Dartifact={artifact}"] if artifact else []),
        ]
        maven += [f"-Dclass.path={path}", "generate-resources"]
        subprocess.run(maven, check=True, timeout=600)
    return path.read_text()


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens on a port."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"nothing listens on {port}")


if __name__ == "__main__":
    main()
