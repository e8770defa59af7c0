"""An S3-compatible server on loopback that remembers what was asked of it, for tests of remote logs."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "bucket"


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"


class ObjectStore:
    """The server, as its clients need it.

    Attributes
    ----------
    requests : list of tuple
        Method, key and bytes asked for of each request since the last ``forget``; None for all bytes.
    broken : str
        Requests for bytes of keys that end with this are answered by a lost connection.
    latency : float
        Seconds before each answer.
    fault : callable or None
        Returns what goes wrong with a request for bytes, by its key: ``503``, ``cut`` (the connection is lost after a
        few bytes), ``short`` (an answer of a few bytes), or None.
    change_fault : callable or None
        Returns what goes wrong with a request that writes or deletes, by its key: ``503``, ``lost`` (the connection is
        lost when it is done, before the answer), or None.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int | None]] = []
        self.broken: str | None = None
        self.latency = 0.0
        self.fault: Callable[[str], str | None] | None = None
        self.change_fault: Callable[[str], str | None] | None = None
        self._lock = threading.Lock()
        self._application = create_backend_app("s3")  # that of a host is looked for at each request
        self._objects = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]
        self._objects.create_bucket(BUCKET, "us-east-1")
        self.server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Handler)
        self.options = {
            "endpoint_override": f"http://127.0.0.1:{self.server.server_port}",
            "access_key": "key",
            "secret_key": "secret",
            "region": "us-east-1",
        }

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(f"/{BUCKET}").lstrip("/")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", environ.get("HTTP_RANGE", ""))
        size = int(asked[2]) - int(asked[1]) + 1 if asked else None
        self.requests.append((method, key or environ["QUERY_STRING"], size))
        if self.broken is not None and method == "GET" and key.endswith(self.broken):
            start_response("200 OK", [("Content-Length", str(size)), ("Connection", "close")])
            return [b""]
        time.sleep(self.latency)
        fault = self.fault(key) if self.fault is not None and method == "GET" and size is not None else None
        if fault == "503":
            start_response("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        if fault is not None:
            length = str(size) if fault == "cut" else "3"
            start_response("206 Partial Content", [("Content-Length", length), ("Connection", "close")])
            return [b"abc"]
        change = self.change_fault(key) if self.change_fault is not None and method not in ("GET", "HEAD") else None
        if change == "503":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        with self._lock:  # moto answers one request at a time
            answer = list(self._application(environ, (lambda *_: None) if change == "lost" else start_response))
        if change == "lost":
            start_response("200 OK", [("Content-Length", "1"), ("Connection", "close")])
            return [b""]
        return answer

    def forget(self) -> None:
        """Begin to remember anew."""
        self.requests.clear()

    def listings(self) -> int:
        """Return how often a folder was listed."""
        return sum("list-type=2" in key for _, key, _ in self.requests)

    def bytes_of(self, suffix: str) -> int:
        """Return the bytes that were asked for of keys with a suffix."""
        return sum(size or 0 for method, key, size in self.requests if method == "GET" and key.endswith(suffix))

    def clear(self) -> None:
        """Delete everything: another server in this process would have it as well."""
        self._objects.reset()

    def write(self, key: str, data: bytes) -> None:
        """Write an object."""
        self._objects.put_object(BUCKET, key, data)

    def all_keys(self) -> list[str]:
        """Return the keys of all objects."""
        return sorted(self._objects.buckets[BUCKET].keys)

    def read(self, key: str) -> bytes:
        """Return an object."""
        data: bytes = self._objects.get_object(BUCKET, key).value
        return data

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._objects.delete_object(BUCKET, key)

    def put(self, folder: Path, key: str, leave_out: tuple[str, ...] = ()) -> str:
        """Upload a folder, or a file, and return its URI."""
        files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
        for path in files:
            if path.suffix not in leave_out:
                name = "" if path == folder else f"/{path.relative_to(folder)}"
                self.write(f"{key}{name}", path.read_bytes())
        return f"s3://{BUCKET}/{key}"


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server on a free port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ObjectStore()
    thread = threading.Thread(target=store.server.serve_forever)
    thread.start()
    try:
        yield store
    finally:
        store.server.shutdown()
        store.clear()
        thread.join()
        store.server.server_close()
