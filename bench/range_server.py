"""An object store on loopback that answers after a while: HEAD, and GET of ranges, of the files of a folder.

``python bench/range_server.py FOLDER SECONDS`` prints its port, and ends with its standard input.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Handler(BaseHTTPRequestHandler):
    """Answers as S3 does, as far as a reader of objects needs."""

    protocol_version = "HTTP/1.1"
    folder: Path
    latency: float

    def do_HEAD(self) -> None:
        """Say how large an object is."""
        self._begin(200, (self.folder / Path(self.path).name).stat().st_size)

    def do_GET(self) -> None:
        """Return a range of an object."""
        path = self.folder / Path(self.path).name
        first, last = map(int, _RANGE.fullmatch(self.headers["Range"]).groups())
        with path.open("rb") as file:
            self._begin(206, last + 1 - first, ("Content-Range", f"bytes {first}-{last}/{path.stat().st_size}"))
            self.wfile.flush()
            self.connection.sendfile(file, first, last + 1 - first)

    def _begin(self, status: int, size: int, *others: tuple[str, str]) -> None:
        time.sleep(self.latency)
        self.send_response(status)
        for name, value in (("Content-Length", str(size)), *others):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until standard input ends."""
    Handler.folder, Handler.latency = Path(sys.argv[1]), float(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
