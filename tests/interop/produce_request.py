"""Produce requests with any bytes as records, which no client would send: version 8 of the protocol."""

from __future__ import annotations

import socket
import struct
from typing import Self

_PRODUCE, _VERSION, _ALL_REPLICAS, _TIMEOUT_MS = 0, 8, -1, 30_000


class RawProducer:
    """A connection to a broker; ``send`` returns what it answers for the records of one partition."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, topic: str, records: bytes) -> tuple[int, list[int], str | None]:
        """Return the error code, the indices of records that are named with an error, and the error's message."""
        name = topic.encode()
        request = struct.pack(">hhihhhi", _PRODUCE, _VERSION, 1, -1, -1, _ALL_REPLICAS, _TIMEOUT_MS)
        request += struct.pack(f">ih{len(name)}siii", 1, len(name), name, 1, 0, len(records)) + records
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._file.read(4))
        answer = self._file.read(size)
        at = 4 + 4 + 2 + len(name) + 4 + 4  # correlation id, one topic, its name, one partition, its number
        (error,) = struct.unpack_from(">h", answer, at)
        at += 2 + 3 * 8  # base offset, append time, log start offset
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        indices = []
        for _ in range(max(count, 0)):
            index, length = struct.unpack_from(">ih", answer, at)
            indices.append(index)
            at += 6 + max(length, 0)
        (length,) = struct.unpack_from(">h", answer, at)
        message = None if length < 0 else answer[at + 2 : at + 2 + length].decode()
        return error, indices, message
