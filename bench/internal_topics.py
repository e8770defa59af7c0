"""The pieces of work on internal topics, each on one of the two seeded logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import folds
import typed_records
from compare.processes import Peers
from metadata_corpus import BATCH_BYTES, ONE_RECORD, MetadataLog
from offsets_corpus import OffsetsLog
from rounds import Contender

METADATA, SINGLES, COMMITS = "metadata", "metadata, batches of one record", "offset commits"
METADATA_RECORDS_PER_MB, COMMITS_PER_MB = 10_000, 5_000
LEAST_SECONDS = 0.25  # of a round: Kafka's classes take about as long for a log of the usual size


@dataclass(frozen=True)
class Piece:
    """A piece of work on one of the logs."""

    work: str
    log: str
    contenders: Callable[[float, Peers], list[Contender]]


def metadata_log(megabytes: float, batch_bytes: int = BATCH_BYTES) -> MetadataLog:
    """Return the metadata log that goes with logs of users of a size."""
    return MetadataLog.of_records(int(megabytes * METADATA_RECORDS_PER_MB), batch_bytes)


def offsets_log(megabytes: float) -> OffsetsLog:
    """Return the partition of ``__consumer_offsets`` that does."""
    return OffsetsLog.of_records(int(megabytes * COMMITS_PER_MB))


PIECES = (
    Piece("typed", METADATA, lambda megabytes, peers: typed_records.metadata(metadata_log(megabytes), peers)),
    Piece("typed", COMMITS, lambda megabytes, peers: typed_records.commits(offsets_log(megabytes), peers)),
    Piece("replay", METADATA, lambda megabytes, peers: folds.replay(metadata_log(megabytes), peers)),
    Piece("replay", SINGLES, lambda megabytes, peers: folds.replay(metadata_log(megabytes, ONE_RECORD), peers)),
    Piece("fold", COMMITS, lambda megabytes, peers: folds.offsets(offsets_log(megabytes), peers)),
)
WORKS = list(dict.fromkeys(piece.work for piece in PIECES))
