"""Work on records of internal topics: to typed columns, to JSON, and back to bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import floors
import kraftlog
import metadata_corpus
import offsets_corpus
from compare.processes import JAVA, Peers
from corpus import Bytes
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import CONSUMER_OFFSETS, METADATA
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages
from rounds import Contender

BINARY, TEXT, FROM_LOG = "typed, uuids as bytes", "typed, uuids as text", "typed, from log bytes"
JSON, ENCODED, MEMCPY = "as JSON", "encode_messages", "memcpy"
KAFKA, KAFKA_FROM_LOG = "Kafka's serde", "Kafka's serde, from log bytes"
CHANGE = "PartitionChangeRecord"
PART = 10  # JSON and bytes are made of this part of the records only: they say the same, and take long

Pair = tuple[pa.BinaryArray | None, pa.BinaryArray]


def metadata(log: metadata_corpus.MetadataLog, peers: Peers) -> list[Contender]:
    """Values of a metadata log to columns of each type, to JSON, and those of one type back."""
    folder = metadata_corpus.path(log)
    pairs = list(_pairs(_bytes(folder), METADATA))
    reader = MessageReader(BUILT_IN.formats[METADATA])
    changes = [reader.read(*pair).typed(CHANGE).fields for pair in pairs[::PART]]
    definition = BUILT_IN.messages[CHANGE]
    assert definition.api_key is not None
    prefix = frame(definition.api_key, 0)

    def encoded() -> int:
        return sum(len(encode_messages(definition, 0, batch, prefix=prefix)) for batch in changes)

    contenders = _readers(_bytes(folder), METADATA, pairs, log.records)
    count = sum(batch.num_rows for batch in changes)
    contenders.append(Contender(ENCODED, encoded, count, _size(pairs) * count // log.records))
    if JAVA in peers:
        for name, work in ((KAFKA, "metadata-values"), (KAFKA_FROM_LOG, "metadata")):
            contenders.append(peers.on_topic(name, work, folder, log.records))
    return contenders


def commits(log: offsets_corpus.OffsetsLog, peers: Peers) -> list[Contender]:
    """Keys and values of ``__consumer_offsets`` to columns, and to JSON."""
    folder = offsets_corpus.path(log)
    pairs = list(_pairs(_bytes(folder), CONSUMER_OFFSETS))
    contenders = _readers(_bytes(folder), CONSUMER_OFFSETS, pairs, log.records)
    if JAVA in peers:
        for name, work in ((KAFKA, "commit-values"), (KAFKA_FROM_LOG, "commits")):
            contenders.append(peers.on_topic(name, work, folder, log.records))
    return contenders


def _readers(data: Bytes, of_format: str, pairs: Sequence[Pair], records: int) -> list[Contender]:
    as_bytes, as_text = (MessageReader(BUILT_IN.formats[of_format], uuid) for uuid in ("binary", "text"))
    size = _size(pairs)
    part = pairs[::PART]
    source = np.concatenate([np.frombuffer(one.buffers()[2], np.uint8) for pair in pairs for one in pair if one])
    target = np.ones_like(source)

    def copied() -> None:
        floors.memcpy(target, source)

    return [
        Contender(BINARY, lambda: _typed(as_bytes, pairs), records, size),
        Contender(TEXT, lambda: _typed(as_text, pairs), records, size),
        Contender(FROM_LOG, lambda: _typed(as_bytes, _pairs(data, of_format)), records, size),
        Contender(JSON, lambda: _json(as_text, part), sum(len(pair[1]) for pair in part), _size(part)),
        Contender(MEMCPY, copied, records, source.nbytes),
    ]


def _typed(reader: MessageReader, pairs: Iterable[Pair]) -> int:
    """Read every record of every type; what is typed of one stretch goes when the next one comes."""
    return sum(one.fields.num_rows for pair in pairs for one in reader.read(*pair).every_typed().values())


def _json(reader: MessageReader, pairs: Iterable[Pair]) -> int:
    return sum(len(reader.read(*pair).json()[1]) for pair in pairs)


def _pairs(data: Bytes, of_format: str) -> Iterator[Pair]:
    columns = ["value"] if of_format == METADATA else ["key", "value"]
    for batch in kraftlog.decode(data, columns=columns).batches():
        yield (None if of_format == METADATA else batch.column("key")), batch.column("value")


def _size(pairs: Sequence[Pair]) -> int:
    """Return how many bytes of keys and values there are."""
    return sum(len(one.buffers()[2]) for pair in pairs for one in pair if one is not None)


def _bytes(folder: Path) -> Bytes:
    return np.fromfile(folder / f"{0:020d}.log", np.uint8)
