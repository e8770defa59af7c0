"""An object store on loopback that answers after a while: listings, HEAD, and GET of ranges, of the files of a folder.

``python bench/range_server.py FOLDER SECONDS`` prints its port, and ends with its standard input.
"""

from __future__ import annotations

import atexit
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Handler(BaseHTTPRequestHandler):
    """Answers as S3 does, as far as a reader of objects needs; the first part of a path is the bucket."""

    protocol_version = "HTTP/1.1"
    folder: Path
    latency: float

    def do_HEAD(self) -> None:
        """Say how large an object is."""
        path = self._file()
        self._begin(*(200, path.stat().st_size) if path.is_file() else (404, 0))

    def do_GET(self) -> None:
        """Return a range of an object, or all objects of a listing on one page."""
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None:
            page = self._page()
            self._begin(200, len(page), ("Content-Type", "application/xml"))
            self.wfile.write(page)
            return
        path, first, last = self._file(), *map(int, asked.groups())
        with path.open("rb") as file:
            self._begin(206, last + 1 - first, ("Content-Range", f"bytes {first}-{last}/{path.stat().st_size}"))
            self.wfile.flush()
            self.connection.sendfile(file, first, last + 1 - first)

    def _file(self) -> Path:
        return self.folder / urlsplit(self.path).path.strip("/").partition("/")[2]

    def _page(self) -> bytes:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        files = sorted((str(path.relative_to(self.folder)), path) for path in self.folder.rglob("*") if path.is_file())
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, path in files
            if key.startswith(prefix)
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        ).encode()

    def _begin(self, status: int, size: int, *others: tuple[str, str]) -> None:
        time.sleep(self.latency)
        self.send_response(status)
        for name, value in (("Content-Length", str(size)), *others):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def serve(folder: Path, latency: float) -> dict[str, str | bool]:
    """Run a server as long as this process lives, and return the storage options for it."""
    server = subprocess.Popen(
        [sys.executable, __file__, str(folder), str(latency)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    return {"endpoint_override": f"http://127.0.0.1:{port}", "anonymous": True, "region": "us-east-1"}


def main() -> None:
    """Serve until standard input ends."""
    Handler.folder, Handler.latency = Path(sys.argv[1]), float(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
