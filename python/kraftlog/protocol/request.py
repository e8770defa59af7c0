"""Requests and responses as frames of a connection: a length, a header, a message."""

from __future__ import annotations

import struct
from asyncio import Future
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kraftlog.codec.cursor import Cursor
from kraftlog.errors import InvalidRecordError, KraftlogError
from kraftlog.messages.one_message import Pieces, decode_message, encoded
from kraftlog.protocol.api import Api, apis
from kraftlog.types import Buffer

API_VERSIONS = 18
UNKNOWN_VERSION = -1
"""The version of a request ``ApiVersions`` whose version is unknown."""

_HEADER = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
_LENGTH_AND_ID = struct.Struct(">ii")
_NO_TAGS = b"\0"
_LEAST_PIECE = 1 << 14  # of a response; each one is a system call


def api_key(frame: Buffer) -> int:
    """Return the API key of a frame without its length, also of one that is no request."""
    return int.from_bytes(memoryview(frame)[:2], "big", signed=True)


class UnsupportedRequestError(KraftlogError, kafka_error="UNSUPPORTED_VERSION"):
    """A request with an unknown key or version."""


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes
    ----------
    api : Api
    version : int
    correlation_id : int
    client_id : str or None
    client_host : str
        Address of the client.
    values : dict
        Its fields, as ``decode_message`` returns them.
    ended : Future or None
        Is done when the client sends no more, and is probably gone; None of a client without a connection.
    """

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    values: dict[str, Any]
    ended: Future[None] | None = None

    @classmethod
    def parse(cls, frame: Buffer, client_host: str, ended: Future[None] | None = None) -> Request:
        """Parse a frame without its length.

        Parameters
        ----------
        frame : buffer
        client_host : str
        ended : Future, optional

        Raises
        ------
        UnsupportedRequestError
            For an unknown key or version. A request ``ApiVersions`` of an unknown version has version 0, because its
            response tells the client which version to use (KIP-511).
        InvalidRecordError
            For invalid bytes.
        """
        view = memoryview(frame)
        if len(view) < _HEADER.size:
            raise InvalidRecordError(f"a request of {len(view)} bytes has no header")
        key, version, correlation_id, size = _HEADER.unpack_from(view)
        api = apis().get(key)
        if api is not None and version not in api.request.versions and key == API_VERSIONS:
            return cls(api, UNKNOWN_VERSION, correlation_id, None, client_host, {})
        if api is None or version not in api.request.versions:
            name = f"api key {key}" if api is None else api.name
            raise UnsupportedRequestError(f"{name}, version {version}, is not supported")
        at = _HEADER.size
        if size > len(view) - at:
            raise InvalidRecordError(f"a client id of {size} bytes in a request of {len(view)} bytes")
        client_id = None if size < 0 else str(view[at : at + size], "utf-8", "replace")
        at += max(size, 0)
        if version in api.request.flexible:
            at = _after_tags(view, at)
        values = decode_message(api.request, version, view[at:])
        return cls(api, version, correlation_id, client_id, client_host, values, ended)

    @property
    def has_response(self) -> bool:
        """Whether the client waits for a response: not if it produces with ``acks=0``."""
        return bool(self.values.get("acks", True))

    def response(self, values: Mapping[str, Any]) -> Pieces:
        """Return the frame of a response, in few pieces: many small ones take far more memory than their bytes.

        Raises
        ------
        InvalidRecordError
            When the version of the request cannot represent a value.
        """
        version = max(self.version, 0)
        pieces = encoded(self.api.response, version, values)
        if version in self.api.response.flexible and self.api.key != API_VERSIONS:
            pieces.insert(0, _NO_TAGS)
        size = _LENGTH_AND_ID.size - 4 + sum(map(len, pieces))
        return _joined([_LENGTH_AND_ID.pack(size, self.correlation_id), *pieces])


def _joined(pieces: Pieces) -> Pieces:
    """Return pieces of which adjacent small ones are joined, and large ones are not copied."""
    joined: Pieces = []
    for is_small, some in groupby(pieces, lambda piece: len(piece) < _LEAST_PIECE):
        run = list(some)
        joined += [b"".join(run)] if is_small else run
    return joined


def _after_tags(view: memoryview, at: int) -> int:
    """Return the byte after the tagged fields of a header; a server has no use for them."""
    cursor = Cursor(view[at:], "the header of a request")
    cursor.tagged_fields()
    return at + cursor.at
