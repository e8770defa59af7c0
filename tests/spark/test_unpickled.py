"""What tasks are sent, in a Python that has no kraftlog."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark.datasource import KraftlogReader
from kraftlog.spark.options import parse_request
from kraftlog.spark.sink import KraftlogStreamWriter, KraftlogWriter
from kraftlog.spark.unpickled import called

LOG = str(GOLDEN / "codecs" / "log")
ROWS = from_arrow_schema(pa.schema([("value", pa.binary()), ("topic", pa.string())]))
HIDES_A_PACKAGE = """
import pickle, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[2]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
pickle.loads(open(sys.argv[1], "rb").read())(None)
"""


def reader() -> KraftlogReader:
    request = parse_request({"path": LOG})
    return KraftlogReader(request, from_arrow_schema(request.schema))


SENT = {
    "reader": lambda folder: reader(),
    "writer": lambda folder: KraftlogWriter({"path": str(folder)}, ROWS, overwrite=False),
    "stream writer": lambda folder: KraftlogStreamWriter({"path": str(folder)}, ROWS, overwrite=False),
    "function": lambda folder: called(parse_request, "reads"),
}


def last_line_without(package: str, sent: bytes, folder: Path) -> str:
    file = folder / "sent"
    file.write_bytes(sent)
    command = [sys.executable, "-c", HIDES_A_PACKAGE, str(file), package]
    return subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1]


@pytest.mark.parametrize("kind", SENT)
def test_a_worker_without_kraftlog_says_what_to_do(kind: str, tmp_path: Path):
    sent = cloudpickle.dumps(SENT[kind](tmp_path / "log"))
    assert last_line_without("kraftlog", sent, tmp_path) == (
        f"ModuleNotFoundError: No module named 'kraftlog' in the Python of this worker, {sys.executable}: install it "
        "there, or set PYSPARK_PYTHON (spark.pyspark.python) to a Python that has it"
    )


@pytest.mark.parametrize("kind", SENT)
def test_a_worker_with_a_zip_file_of_kraftlog_says_what_to_do(kind: str, tmp_path: Path):
    """As with ``--py-files``: Python imports no compiled module from a zip file."""
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps(SENT[kind](tmp_path / "log")))
    package = Path(kraftlog.__file__).parent
    with zipfile.ZipFile(tmp_path / "kraftlog.whl", "w") as wheel:
        for path in package.rglob("*"):
            if path.suffix in (".py", ".so", ".messages"):
                wheel.write(path, path.relative_to(package.parent))
    program = "import pickle, sys; sys.path.insert(0, sys.argv[1]); pickle.loads(open(sys.argv[2], 'rb').read())(None)"
    command = [sys.executable, "-c", program, str(tmp_path / "kraftlog.whl"), str(sent)]
    assert subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1] == (
        "ModuleNotFoundError: No compiled modules of kraftlog, which a zip file of --py-files cannot have, in the "
        f"Python of this worker, {sys.executable}: install it there, or set PYSPARK_PYTHON (spark.pyspark.python) to a "
        "Python that has it"
    )


def test_another_package_that_is_missing_is_named_as_ever(tmp_path: Path):
    sent = cloudpickle.dumps(reader())
    assert last_line_without("numpy", sent, tmp_path) == "ModuleNotFoundError: No module named 'numpy'"


def test_what_arrives_is_what_was_sent():
    sent = reader()
    arrived = cloudpickle.loads(cloudpickle.dumps(sent))
    assert (type(arrived), vars(arrived)) == (KraftlogReader, vars(sent))
    task = called(len, "counts")
    assert cloudpickle.loads(cloudpickle.dumps(task))([1, 2]) == 2
    assert task.__name__ == "counts"
