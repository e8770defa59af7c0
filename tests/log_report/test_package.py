"""The report needs jinja2, and says so before it reads anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kraftlog
from golden_files import GOLDEN

LOG = GOLDEN / "codecs" / "log"


def test_without_jinja2():
    code = "import sys; sys.modules['jinja2'] = None; from kraftlog.cli import main; main()"
    command = [sys.executable, "-c", code, "report", str(LOG), "-o", "none.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the report needs jinja2, which is not installed: pip install 'kraftlog[report]'" in done.stderr


def test_who_makes_no_report_imports_no_jinja2():
    code = f"import sys, kraftlog; kraftlog.open({str(LOG)!r}).stats([]); print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_a_report_shows_of_itself():
    made = kraftlog.report(GOLDEN / "damaged" / "bit_flip_payload" / "log")
    assert repr(made) == "<kraftlog.Report: 1 partitions>\nerror: 1 batch with a wrong checksum, 96 bytes not read"
    with pytest.raises(FileNotFoundError):
        kraftlog.report("no-such-folder")
    with pytest.raises(ValueError, match="which is being read; choose another folder"):
        kraftlog.report(LOG, LOG / "codec-lz4-0" / "report.html")
    assert not (LOG / "codec-lz4-0" / "report.html").exists()
    with pytest.raises(ValueError, match="did you mean codec-lz4"):
        kraftlog.report(LOG, topics=["codec-lz5"])
