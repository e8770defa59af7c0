"""Remote tiers as Kafka's plugins write them, made of the segments of a log; by the descriptions of both layouts.

Nothing of kraftlog is used here: what it reads of these tiers is compared with the log itself.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from backports import zstd
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

TOPIC_ID = "lZ6vvmajTWKDBUTV6SQAtQ"

Put = Callable[[str, bytes], None]


def new_id() -> str:
    """Return 16 bytes as Kafka prints them."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


@dataclass
class Source:
    """A closed segment of a log directory: what a broker hands to a plugin."""

    folder: Path
    base_offset: int
    end_offset: int
    epochs: list[tuple[int, int]]
    topic: str
    partition: int
    next_offset: int
    segment_id: str = field(default_factory=new_id)
    event_timestamp_ms: int = 1_700_000_000_000
    made: dict[str, bytes] = field(default_factory=dict)

    def file(self, kind: str, offset: int | None = None) -> bytes | None:
        """Return a file of the segment; None when there is none."""
        if kind in self.made:
            return self.made[kind]
        path = self.folder / f"{self.base_offset if offset is None else offset:020d}.{kind}"
        return path.read_bytes() if path.exists() else None

    @property
    def log(self) -> bytes:
        """Return the log file."""
        found = self.file("log")
        assert found is not None
        return found

    @property
    def history(self) -> bytes:
        """Return the leader epochs of the log up to the end of the segment, as a checkpoint."""
        entries = [entry for entry in self.epochs if entry[1] <= self.end_offset]
        return "".join(f"{line}\n" for line in [0, len(entries), *(f"{e} {o}" for e, o in entries)]).encode()

    @property
    def within(self) -> dict[str, int]:
        """Return the leader epochs of its offsets."""
        found = {}
        for at, (epoch, first) in enumerate(self.epochs):
            behind = self.epochs[at + 1][1] if at + 1 < len(self.epochs) else math.inf
            if first <= self.end_offset and behind > self.base_offset:
                found[str(epoch)] = max(first, self.base_offset)
        return found


def sources(folder: Path, epochs: list[tuple[int, int]] | None = None) -> list[Source]:
    """Return the closed segments of a partition's folder: all but the last."""
    topic, _, partition = folder.name.rpartition("-")
    if epochs is None:
        lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()[2:]
        epochs = [(int(line.split()[0]), int(line.split()[1])) for line in lines]
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    return [
        Source(folder, base, following - 1, epochs, topic, int(partition), following, event_timestamp_ms=1000 + at)
        for at, (base, following) in enumerate(pairwise(bases))
    ]


def to_folder(root: Path) -> Put:
    """Return what writes objects below a folder."""

    def put(key: str, data: bytes) -> None:
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return put


def write_local(put: Put, segments: Iterable[Source], topic_id: str = TOPIC_ID) -> None:
    """Write segments as ``LocalTieredStorage`` does."""
    for one in segments:
        name = f"{one.topic}-{one.partition}-{topic_id}/{one.base_offset:020d}-{one.segment_id}"
        files = {
            ".log": one.log,
            ".index": one.file("index"),
            ".timeindex": one.file("timeindex"),
            ".txnindex": one.file("txnindex"),
            ".snapshot": one.file("snapshot", one.next_offset),
            ".leader_epoch_checkpoint": one.history,
        }
        for suffix, data in files.items():
            if data is not None:
                put(f"kafka-tiered-storage/{name}{suffix}", data)


@dataclass
class KeyPair:
    """An RSA key pair in PEM files."""

    name: str
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.private = self.folder / f"{self.name}.pem"
        self._key = rsa.generate_private_key(65537, 2048)
        self.private.write_bytes(self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def wrap(self, key: bytes) -> str:
        """Return a key wrapped by OAEP with SHA3-512, as OpenSSL does it."""
        settings = ("rsa_padding_mode:oaep", "rsa_oaep_md:sha3-512", "rsa_mgf1_md:sha3-512")
        options = [word for setting in settings for word in ("-pkeyopt", setting)]
        done = subprocess.run(
            ["openssl", "pkeyutl", "-encrypt", "-inkey", str(self.private), *options],
            input=key,
            check=True,
            capture_output=True,
        )
        return f"{self.name}:{base64.b64encode(done.stdout).decode()}"


@dataclass
class Aiven:
    """What Aiven's plugin is configured with."""

    chunk_size: int = 4096
    compression: bool = False
    key_pair: KeyPair | None = None
    prefix: str = "ts/"

    def write(self, put: Put, segments: Iterable[Source], topic_id: str = TOPIC_ID) -> None:
        """Write segments: log, indexes and manifest of each."""
        for one in segments:
            for suffix, data in self.objects(one, topic_id).items():
                put(f"{self.key(one, topic_id)}.{suffix}", data)

    def key(self, one: Source, topic_id: str = TOPIC_ID) -> str:
        """Return the key of a segment's objects, without the suffix."""
        return f"{self.prefix}{one.topic}-{topic_id}/{one.partition}/{one.base_offset:020d}-{one.segment_id}"

    def objects(self, one: Source, topic_id: str = TOPIC_ID) -> dict[str, bytes]:
        """Return the objects of a segment by suffix."""
        key, aad = os.urandom(32), os.urandom(32)

        def sealed(data: bytes) -> bytes:
            if self.key_pair is None:
                return data
            nonce = os.urandom(12)
            return nonce + AESGCM(key).encrypt(nonce, data, aad)

        log = one.log
        chunks = [log[at : at + self.chunk_size] for at in range(0, len(log), self.chunk_size)]
        stored = [sealed(zstd.compress(chunk) if self.compression else chunk) for chunk in chunks]
        indexes, places = b"", {}
        for name, data in {
            "offset": one.file("index") or b"",
            "timestamp": one.file("timeindex") or b"",
            "producerSnapshot": one.file("snapshot", one.next_offset) or b"",
            "leaderEpoch": one.history,
            "transaction": one.file("txnindex"),
        }.items():
            part = sealed(data) if data else data
            places[name] = None if part is None else {"position": len(indexes), "size": len(part)}
            indexes += part or b""
        sizes = [len(chunk) for chunk in stored]
        index = {"originalChunkSize": self.chunk_size, "originalFileSize": len(log)}
        if self.compression:
            packed = base64.b64encode(zstd.compress(packed_sizes(sizes))).decode()
            index |= {"type": "variable", "transformedChunks": packed}
        else:
            growth = 0 if self.key_pair is None else 28
            last = sizes[-1] if sizes else 0
            index |= {
                "type": "fixed",
                "transformedChunkSize": self.chunk_size + growth,
                "finalTransformedChunkSize": last,
            }
        manifest = {
            "version": "1",
            "chunkIndex": index,
            "segmentIndexes": places,
            "compression": self.compression,
            "remoteLogSegmentMetadata": {
                "remoteLogSegmentId": {
                    "topicIdPartition": {
                        "topicId": topic_id,
                        "topicPartition": {"topic": one.topic, "partition": one.partition},
                    },
                    "id": one.segment_id,
                },
                "startOffset": one.base_offset,
                "endOffset": one.end_offset,
                "maxTimestampMs": 0,
                "brokerId": 1,
                "eventTimestampMs": one.event_timestamp_ms,
                "segmentLeaderEpochs": one.within,
            },
        }
        if self.key_pair is not None:
            manifest["encryption"] = {
                "dataKey": self.key_pair.wrap(key),
                "aad": base64.b64encode(aad).decode(),
            }
        return {"log": b"".join(stored), "indexes": indexes, "rsm-manifest": json.dumps(manifest).encode()}


def packed_sizes(sizes: list[int]) -> bytes:
    """Return sizes of chunks as Aiven's ChunkSizesBinaryCodec has them."""
    if not sizes:
        return struct.pack(">i", 0)
    if len(sizes) == 1:
        return struct.pack(">ii", 1, sizes[0])
    base = min(sizes[:-1])
    width = max(1, -(-max(size - base for size in sizes[:-1]).bit_length() // 8))
    values = b"".join((size - base).to_bytes(width) for size in sizes[:-1])
    return struct.pack(">iib", len(sizes), base, width) + values + struct.pack(">i", sizes[-1])


def last_only(folder: Path, target: Path, keep: int = 1) -> Path:
    """Copy a partition's folder without its first segments, as a broker leaves it when they are in the tier."""
    shutil.copytree(folder, target / folder.name)
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    for base in bases[: len(bases) - keep]:
        for path in (target / folder.name).glob(f"{base:020d}.*"):
            path.unlink()
    return target
