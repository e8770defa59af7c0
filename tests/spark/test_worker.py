"""What a worker does once does not outlive it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("duckdb")


def test_what_is_left_out_of_collections_is_collected_at_exit():
    code = (
        "import gc, duckdb\n"
        "from kraftlog.spark.worker import settle\n"
        "duckdb.connect().close()\n"
        "settle()\n"
        "print(gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
