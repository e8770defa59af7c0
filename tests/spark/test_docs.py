"""The Spark examples of README, docs and docstrings run, and give what is shown with them."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark.stream import HAS_READ_LIMITS
from object_store import object_store
from streaming_queries import until_its_worker_starts
from tier_writer import Aiven, KeyPair, last_only, sources, to_folder

ROOT = Path(__file__).parents[2]
LOG = GOLDEN / "transactions" / "log"
TOPIC_ID = "911PgdAUTfK0_8FSda0bUA"
RUN_BY_CI = {"docs/deployment.md"}  # by ci/deploy, on a cluster
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n(.*?)```)?", re.DOTALL)
PAGES = {
    str(page.relative_to(ROOT)): BLOCK.findall(page.read_text("utf-8"))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
ROWS = {"README.md": 124, "docs/cookbook.md": 124, "docs/how-to/tiered-storage.md": 118}  # of examples without output
LIMIT = '.option("maxOffsetsPerTrigger", 100000)'
SOURCES = sorted((ROOT / "python" / "kraftlog" / "spark").glob("*.py"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the examples read."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(GOLDEN / "metadata" / "log", folder / "sample" / "metadata")
    for name in ("sample/broker", "backup", "backup/kafka-logs", "mnt/backup/kafka-logs"):
        shutil.copytree(LOG, folder / name)
    tier = Aiven(1000, compression=True, key_pair=KeyPair("k1", folder / "keys"))
    tier.write(to_folder(folder / "ts"), sources(LOG / "orders-0"), TOPIC_ID)
    last_only(LOG / "orders-0", folder / "kafka")
    (folder / "keys" / "redact").write_bytes(b"sixteen bytes, or more")
    return folder


@pytest.fixture
def with_files(folder: Path) -> Iterator[Callable[[str], str]]:
    """Return what names the files of this machine where an example names those of another one."""
    with object_store() as store:
        store.put(LOG, "kafka-logs")
        places = {
            "s3://bucket/ts": str(folder / "ts"),
            "/var/lib/kafka": str(folder / "kafka"),
            '"/keys/': f'"{folder}/keys/',
            '"/mnt/': f'"{folder}/mnt/',
            '"sample/': f'"{folder}/sample/',  # Spark resolves paths where it was started
            '"backup/': f'"{folder}/backup/',
            '"lake/backup"': f'"{folder}/lake/backup"',
            """'{"region": "eu-central-1"}'""": repr(json.dumps(store.options)),
        }

        def replace(source: str) -> str:
            for place, here in places.items():
                source = source.replace(place, here)
            return source

        yield replace


@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if blocks and page not in RUN_BY_CI])
def test_page(spark, folder: Path, with_files, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    shutil.rmtree(folder / "lake", ignore_errors=True)
    names = {
        "spark": spark,
        "F": F,
        "logs": str(folder / "sample" / "broker"),
        "df": spark.read.format("kraftlog").option("subscribe", "orders").load(str(folder / "sample" / "broker")),
        "target": str(tmp_path / "target"),
        "state": str(tmp_path / "state"),
    }
    for source, output in PAGES[page]:
        if not HAS_READ_LIMITS:  # the page says so
            if "offsets_behind_latest" in source:
                continue
            source = source.replace(LIMIT, "")
        frames = [value for value in run(with_files(source), names) if isinstance(value, DataFrame)]
        if output:
            assert tables_of(output) == [table_of(frame) for frame in frames]
        elif page in ROWS:
            frames += [value for value in names.values() if isinstance(value, DataFrame) and value is not names["df"]]
            assert [frame.count() for frame in frames] == [ROWS[page]] * len(frames)
        else:
            for frame in frames:
                assert frame.count() > 0


def run(source: str, names: dict[str, Any]) -> list[Any]:
    """Run a block; return the values of its expressions, which are what the comments behind them say."""
    lines = source.splitlines()
    values = []
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Expr):
            code = compile(ast.Module([statement], []), "<docs>", "exec")
            until_its_worker_starts(lambda code=code: settled_names(code, names))
            continue
        expression = compile(ast.Expression(statement.value), "<docs>", "eval")
        value = until_its_worker_starts(lambda code=expression: settled(eval(code, names)))
        values.append(value)
        behind = lines[statement.end_lineno] if statement.end_lineno < len(lines) else ""
        if behind.startswith("# "):
            shown = ", ".join(map(str, value.first())) if isinstance(value, DataFrame) else repr(value)
            shown = shown.replace(str(Path.cwd()), "...")
            assert shown == behind.removeprefix("# ")
    return values


def settled_names(code: CodeType, names: dict[str, Any]) -> None:
    """Run a statement; the queries to which it gives names are settled, as those of expressions are."""
    before = dict(names)
    exec(code, names)
    for name, value in names.items():
        if value is not before.get(name):
            settled(value)


def settled(value: Any) -> Any:
    """Stop a query that has read what is there; return other values as they are."""
    if isinstance(value, StreamingQuery):
        try:
            value.processAllAvailable()
        finally:
            value.stop()
    return value


Table = list[tuple[str, ...]]


def tables_of(output: str) -> list[Table]:
    """Return the tables of an output, which may stand side by side: their cells, sorted below the names."""
    sides = [re.split(r"(?<=[|+]) {10,}(?=[|+])", line.rstrip()) for line in output.splitlines()]
    width = max(map(len, sides))
    return [_table([side[at] for side in sides if len(side) > at]) for at in range(width)]


def table_of(frame: DataFrame) -> Table:
    """Return what ``show`` prints of a frame, in the same form."""
    return _table(frame._show_string(20).splitlines())


def _table(lines: list[str]) -> Table:
    names, *rows = (tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines if line.startswith("|"))
    return [names, *sorted(rows)]


def docstring_examples() -> dict[str, list[doctest.Example]]:
    """Return the examples of the modules that need a session of Spark."""
    parser = doctest.DocTestParser()
    found = {path.stem: parser.get_examples(path.read_text("utf-8")) for path in SOURCES}
    return {name: examples for name, examples in found.items() if any(doctest.SKIP in one.options for one in examples)}


@pytest.mark.parametrize("module", docstring_examples())
def test_docstrings(spark, folder: Path, with_files, module: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    shutil.rmtree(folder / "lake", ignore_errors=True)
    names = {"spark": spark, "F": F, "df": values_of_all_kinds(spark)}
    for view in ("changes", "offsets", "responses"):
        names["df"].createOrReplaceTempView(view)
    for example in docstring_examples()[module]:
        for value in run(with_files(example.source), names):
            if isinstance(value, DataFrame):
                assert value.collect()
            shown = example.want.partition('"""')[0].strip()
            assert shown in ("", repr(value))


def values_of_all_kinds(spark: Any) -> DataFrame:
    """Return records of a metadata log that are no markers, with the columns that the docstrings name."""
    segment = GOLDEN / "metadata_txn" / "names" / "log" / "__cluster_metadata-0" / f"{0:020d}.log"
    rows = kraftlog.open(segment).records(["offset", "timestamp", "value"]).to_table().to_pylist()
    more = {"key": b"key", "content": segment.read_bytes(), "records": [bytes.fromhex("01140000")]}
    types = "offset long, timestamp timestamp, value binary, key binary, content binary, records array<binary>"
    frame = spark.createDataFrame([tuple((row | more).values()) for row in rows if row["value"][1] < 0x17], types)
    return frame.withColumns({name: F.lit(name) for name in ("group", "transaction")} | {"partition": F.lit(0)})


def test_every_block_of_python_is_of_spark():
    """The examples of other pages are sessions of Python, which tests/project runs."""
    of_spark = re.compile(r"\bspark\b|\bdf\.")
    assert {page for page, blocks in PAGES.items() if any(not of_spark.search(source) for source, _ in blocks)} == set()
