"""A Kafka Streams application that counts words and joins lines with names, fed and killed by a test."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from applications_of_kafka import HERE, running, wait_until
from confluent_kafka import Producer

import kraftlog

WORDS = [f"word-{number}" for number in range(30)]
TOPICS = [{"name": name, "partitions": 2, "configs": {}} for name in ("lines", "names", "counts", "joined")]
REPARTITIONED = ("words-by-first-repartition", "words-counted-repartition")  # topics that the application creates
LIMIT = 60.0


@dataclass
class WordCount:
    """The application over the topics of a broker, which ``TOPICS`` has.

    Parameters
    ----------
    bootstrap_servers : str
    log_dir : Path
        Of the broker.
    folder : Path
        Of the stores and the output of the application.
    seed : int
    """

    bootstrap_servers: str
    log_dir: Path
    folder: Path
    seed: int
    lines: list[str] = field(default_factory=list)

    def run(self, lines_a_run: int, runs: int, at_work: Callable[[int], None]) -> None:
        """Run the application so many times; all but the last one are killed while they are at work.

        ``at_work`` is called with the number of each run, in its middle.
        """
        drawn = random.Random(self.seed)
        settings = {"enable.idempotence": True, "partitioner": "murmur2_random", "log_level": 0}
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, **settings})
        for word in WORDS:
            producer.produce("names", f"name of {word}", word)
        producer.flush(LIMIT)  # before the lines: a join waits for what the broker has

        def send(count: int) -> None:
            for _ in range(count):
                self.lines.append(" ".join(drawn.choices(WORDS, k=drawn.randint(1, 6))))
                producer.produce("lines", self.lines[-1], partition=drawn.randrange(2))
            assert producer.flush(LIMIT) == 0

        arguments = [str(HERE / "WordCount.java"), self.bootstrap_servers, str(self.folder / "stores")]
        for number in range(1, runs + 1):
            with running("kafka-streams", *arguments, output=self.folder / "streams.out") as streams:
                before = len(self._values("joined"))
                send(lines_a_run // 2)
                wait_until(partial(lambda before: len(self._values("joined")) > before, before))
                at_work(number)
                send(lines_a_run // 2)
                if number < runs:
                    streams.kill()
                    streams.wait()
                else:
                    wait_until(self._is_done)

    def _is_done(self) -> bool:
        is_joined = len(self._values("joined")) >= len(self.lines)
        return is_joined and self._last_counts() == self._expected_counts() and self._are_purged()

    def check(self) -> None:
        """Check that each word is counted and each line is joined exactly once."""
        joined = [value for _, value in self._values("joined")]
        assert sorted(joined) == sorted(f"name of {line.split()[0]}: {line}" for line in self.lines)
        counts: dict[str, list[int]] = {}
        for word, count in self._values("counts"):
            counts.setdefault(word, []).append(int(count))
        for of_word in counts.values():
            assert of_word == sorted(set(of_word)), "a count that was committed twice, or taken back"
        assert self._last_counts() == self._expected_counts()
        for topic in ("words-counted-changelog", *REPARTITIONED):
            assert [*self.log_dir.glob(f"{topic}-*")]

    def _expected_counts(self) -> dict[str, int]:
        return dict(Counter(word for line in self.lines for word in line.split()))

    def _last_counts(self) -> dict[str, int]:
        return {word: int(count) for word, count in self._values("counts")}

    def _are_purged(self) -> bool:
        """Whether the application has deleted records that it no longer needs, with DeleteRecords."""
        log = kraftlog.open(self.log_dir, topics=REPARTITIONED)
        rows = log.partition_offsets("earliest", ["topic", "offset"]).to_table().to_pylist()
        return {row["topic"] for row in rows if row["offset"]} == {*REPARTITIONED}

    def _values(self, topic: str) -> list[tuple[str, str]]:
        """Return the committed keys and values of a topic; a line has no key."""
        if not [*self.log_dir.glob(f"{topic}-*/*.log")]:  # a broker of this package makes files when it has records
            return []
        log = kraftlog.open(self.log_dir, topics=[topic])
        rows = log.records(["key", "value"], isolation_level="read_committed").to_table().to_pylist()
        return [((row["key"] or b"").decode(), row["value"].decode()) for row in rows]
