"""Work on whole internal topics: the metadata image, and the offsets that groups have committed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kraftlog
import metadata_corpus
import offsets_corpus
from compare.processes import JAVA, Peers
from kraftlog.errors import Fault
from kraftlog.layout.discover import discover
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import METADATA
from kraftlog.messages.reader import MessageReader
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from rounds import Contender

REPLAYED, APPLIED, KAFKA = "image_at", "Image.apply of typed records", "Kafka's MetadataDelta"
TABLE, LOADED = "table offsets", "Kafka's classes and a HashMap"


def replay(log: metadata_corpus.MetadataLog, peers: Peers) -> list[Contender]:
    """Fold a metadata log to its image, from its files and from records that are columns already."""
    folder = metadata_corpus.path(log)
    segments = discover(folder).segments
    size = sum(segment.size for segment in segments)
    chunks = _metadata_chunks(folder)

    def replayed() -> None:
        faults: list[Fault] = []
        image = image_at(MetadataLog(segments), None, faults, use_snapshots=False).image
        assert image.partitions_count == log.partitions
        assert not faults

    def applied() -> None:
        image = Image.empty()
        for chunk in chunks:
            image.apply(chunk)
        assert image.partitions_count == log.partitions
        assert not image.faults

    contenders = [Contender(REPLAYED, replayed, log.records, size), Contender(APPLIED, applied, log.records, size)]
    if JAVA in peers:
        contenders.append(peers.on_topic(KAFKA, "replay", folder, log.records, (log.records, log.partitions)))
    return contenders


def offsets(log: offsets_corpus.OffsetsLog, peers: Peers) -> list[Contender]:
    """Fold a partition of ``__consumer_offsets`` to the offsets that count, from its file."""
    folder = offsets_corpus.path(log)
    segments = discover(folder).segments
    size = sum(segment.size for segment in segments)

    def table() -> None:
        faults: list[Fault] = []
        read = Read.of_segments(TABLES["offsets"], segments, faults=faults)
        rows = sum(batch.num_rows for batch in read.rows())
        assert rows == offsets_corpus.KEYS
        assert not faults

    contenders = [Contender(TABLE, table, log.records, size)]
    if JAVA in peers:
        sums = (log.records, offsets_corpus.KEYS)
        contenders.append(peers.on_topic(LOADED, "offsets", folder, log.records, sums))
    return contenders


def _metadata_chunks(folder: Path) -> list[dict[str, pa.RecordBatch]]:
    """Return the records of each type as ``Image.apply`` takes them; those of transactions are all committed."""
    reader = MessageReader(BUILT_IN.formats[METADATA], "binary")
    chunks = []
    for batch in kraftlog.open(folder).records(["offset", "value"]).batches():
        messages, places = reader.read(None, batch.column("value")), batch.column("offset").to_numpy()
        typed = {name: messages.typed(name) for name in messages.types_there}
        chunks.append(
            {name: one.fields.add_column(0, "offset", pa.array(places[one.rows])) for name, one in typed.items()}
        )
    return chunks
