"""The topics that Spark reads: 10 M orders in a real broker's log directory, once made and then kept.

They lie in the user's cache folder: the broker is started again on the same log directory when Spark's own Kafka
source is to read them. ``payments`` are orders in transactions of 100 ms that were all committed.
"""

from __future__ import annotations

import os
from pathlib import Path

from jvm import Jvm
from kafka_broker import Broker

import corpus
import kraftlog

VERSION = 1  # in the name of the folder; to be raised when the contents change
ORDERS, PAYMENTS = "orders", "payments"
TRANSACTION_MS = {ORDERS: 0, PAYMENTS: 100}
PARTITIONS = range(2)
BATCH_BYTES = 65_536
PRODUCER = Path(__file__).parent / "Orders.java"


def cache() -> Path:
    """Return the folder that holds what takes long to make."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kraftlog-bench"


class Topics:
    """Both topics, with so many records each, and the broker that has them.

    Attributes
    ----------
    log_dir : pathlib.Path
    records : int
    """

    def __init__(self, records: int) -> None:
        self.records = records
        self.home = cache() / f"spark-{records}-{VERSION}"
        self.home.mkdir(parents=True, exist_ok=True)
        self._jvm = Jvm(self.home, ["-Xms2g", "-Xmx2g"])
        self.broker = Broker(self._jvm, self.home)
        self.log_dir = self.broker.log_dir

    def make(self) -> None:
        """Let a producer fill the topics that are not there; the broker must be running."""
        for topic, transaction_ms in TRANSACTION_MS.items():
            done = self.home / f"{topic}.done"
            if not done.exists():
                numbers = [str(self.records), str(transaction_ms)]
                self._jvm.run(str(PRODUCER), self.broker.bootstrap_servers, topic, *numbers, limit=3600)
                done.touch()


def make_without_broker(log_dir: Path, records: int) -> None:
    """Write the topic ``orders`` as kraftlog encodes it, for a quick look."""
    for partition in PARTITIONS:
        folder = log_dir / f"{ORDERS}-{partition}"
        folder.mkdir(parents=True)
        encoder = kraftlog.Encoder(max_batch_bytes=BATCH_BYTES)
        left = records // len(PARTITIONS)
        with (folder / f"{0:020d}.log").open("wb") as out:
            for rows in corpus.rows(corpus.Workload(100, 64)):
                encoder.write(rows.slice(0, left))
                out.write(encoder.take())
                left -= min(left, rows.num_rows)
                if not left:
                    break
            out.write(encoder.finish())
