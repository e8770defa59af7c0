"""What is imported when; and that the base install needs none of the extras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN

METADATA, CODECS = GOLDEN / "metadata" / "log", GOLDEN / "codecs" / "log"


def run(code: str, *blocked: str) -> list[str]:
    """Return the lines that code prints in a process of its own, in which some modules cannot be imported."""
    before = f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def imported(code: str) -> set[str]:
    return set(run(f"{code}\nprint('\\n'.join(sys.modules))"))


def test_every_public_name_is_there_and_says_where_it_is_from():
    for name in kraftlog.__all__:
        assert getattr(kraftlog, name) is not None
    assert set(kraftlog.__all__) <= set(dir(kraftlog))
    with pytest.raises(AttributeError, match="module 'kraftlog' has no attribute 'opne'"):
        kraftlog.opne  # type: ignore[attr-defined]  # noqa: B018
    names = run("from kraftlog import *; print('\\n'.join(name for name in dir() if name[0] != '_'))")
    assert set(kraftlog.__all__) <= set(names)


def test_the_package_imports_what_is_used():
    assert not {"pyarrow", "numpy", "kraftlog.codec", "kraftlog.tables"} & imported("import kraftlog")
    codec = imported("import kraftlog; kraftlog.decode, kraftlog.encode")
    layers = {".".join(name.split(".")[:2]) for name in codec if name.startswith("kraftlog.")}
    modules = {"errors", "notes", "schema", "stream", "topics", "types"}
    assert layers <= {"kraftlog." + name for name in {"_native", "codec", *modules}}
    assert "pyarrow.compute" not in codec
    opened = imported(f"import kraftlog; kraftlog.open({str(CODECS)!r}).records(['offset'])")
    assert not {"pyarrow.compute", "numba", "kraftlog.check", "kraftlog.metadata", "kraftlog.write"} & opened


def test_the_codec_needs_none_of_the_other_dependencies():
    code = f"""
import kraftlog
from pathlib import Path
for log in sorted(Path({str(CODECS)!r}).glob("codec-*-0/*.log")):
    rows = kraftlog.decode(log.read_bytes(), columns=["key", "value", "timestamp", "headers"]).to_table()
    again = kraftlog.decode(kraftlog.encode(rows), columns=rows.column_names, strict=True).to_table()
    assert again.equals(rows) and rows.num_rows
    print(log.name)
"""
    files = run(code, "numba", "rich", "click", "pyspark", "fsspec", "aiokafka")
    assert files == [log.name for log in sorted(CODECS.glob("codec-*-0/*.log"))] != []


def test_plans_are_the_same_without_numba():
    code = """
import json, kraftlog
sizes = [0, 100, 60, 3000, 63, 1 << 13, -1] * 300
print(json.dumps(kraftlog.plan_batches(sizes, 9000).tolist()))
"""
    compiled, plain = run(code), run(code, "numba")
    assert plain == compiled
    assert len(json.loads(plain[0])) > 100


def test_an_image_needs_no_numba():
    code = f"import kraftlog; image = kraftlog.open({str(METADATA)!r}).image().image; image.tables()"
    assert "numba" not in imported(code)


def command(*arguments: str) -> str:
    """Return code that runs the command line."""
    return f"""
import sys
sys.argv = {["kraftlog", *arguments]!r}
import kraftlog.cli
try:
    kraftlog.cli.main()
except SystemExit:
    pass
"""


def test_a_command_imports_what_it_uses():
    found = imported(command("image", str(METADATA), "--output", "/dev/null"))
    assert "kraftlog.cli.image" in found
    assert not {"numba", "pandas", "rich", "pyarrow.parquet", "kraftlog.cli.dump", "kraftlog.log_store"} & found


def test_version_and_help_import_no_command():
    heavy = {"numpy", "pyarrow", "rich", "kraftlog._native", "kraftlog.codec", "kraftlog.schema", "kraftlog.disk"}
    for arguments in (["--version"], ["--help"], []):
        found = imported(command(*arguments))
        assert "click" in found
        assert not heavy & found
        assert {name for name in found if name.startswith("kraftlog.cli.")} == {
            "kraftlog.cli.tasks",
            "kraftlog.cli.interrupts",
        }
        listed = {f"kraftlog.tables.{name}" for name in ("all_tables", "options", "table")}
        assert {name for name in found if name.startswith("kraftlog.tables.")} == listed


def test_tables_import_no_more_than_they_show():
    unused = {"numba", "pandas", "rich", "pyarrow.parquet", "pyarrow.fs", "fsspec", "kraftlog.check", "kraftlog.write"}
    unused |= {"kraftlog.metadata", "kraftlog.coordinator", "kraftlog.metadata_log", "kraftlog.transactions.packing"}
    found = imported(command("segments", str(CODECS), "--output", "/dev/null"))
    assert {"kraftlog.cli.tables", "kraftlog.cli.table_output", "pyarrow.compute"} <= found
    assert not (unused | {"kraftlog.tables.stats"}) & found
    others = {f"kraftlog.cli.{name}" for name in ("dump", "image", "pack", "recover", "shell", "stats", "verify")}
    assert not others & found
    found = imported(command("segments", str(CODECS), "--help"))
    assert not (unused | {"pyarrow.compute", "kraftlog.cli.table_output", "kraftlog.cli.cells"}) & found


def test_sample_needs_no_arrow(tmp_path: Path):
    found = imported(command("sample", str(tmp_path / "sample")))
    assert "kraftlog.cli.sample" in found
    assert not {"pyarrow", "numpy"} & found
    assert (tmp_path / "sample" / "broker").is_dir()


def test_commands_import_neither_numba_nor_pandas():
    of_metadata = [(name, METADATA) for name in ("image", "timeline", "diff", "health", "messages", "records")]
    of_groups = [(name, GOLDEN / "groups" / "log") for name in ("offsets", "groups", "messages")]
    told = "print('after', sys.argv[1], {'numba', 'pandas'} & sys.modules.keys() or '')"
    code = [f"{command(name, str(log), '--output', '/dev/null')}{told}" for name, log in [*of_metadata, *of_groups]]
    assert [line.strip() for line in run("\n".join(code))] == [
        f"after {name}" for name, _ in [*of_metadata, *of_groups]
    ]


def test_records_need_no_pandas():
    """Pyarrow imports it with the first value that it converts, which takes longer than reading a small log."""
    code = ["import kraftlog"]
    for table in ("records().to_table()", "records(isolation_level='read_committed').to_table()", "batches()"):
        code.append(f"assert kraftlog.open({str(GOLDEN / 'transactions' / 'log')!r}).{table}.num_rows")
    code.append(f"assert kraftlog.open({str(METADATA)!r}).messages().to_table().num_rows")
    assert not {"numba", "pandas"} & imported("\n".join(code))


# a client that produces and fetches a record, and no more
BROKER = """
import kraftlog
from confluent_kafka import Consumer, Producer, TopicPartition
with kraftlog.Broker() as broker:
    client = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    producer = Producer(client)
    producer.produce("first", b"record")
    assert producer.flush(60) == 0
    consumer = Consumer(client | {"group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("first", 0, 0)])
    assert consumer.poll(60).value() == b"record"
    consumer.close()
"""


def test_a_new_broker_imports_what_it_serves_with():
    found = imported(BROKER)
    assert "kraftlog.server.broker" in found
    layers = {"metadata_log.image", "metadata.image", "tables.log", "tables.coordinator_tables", "messages.reader"}
    of_rows = {"log_store.consumer", "log_store.producer", "log_store.housekeeping", "tables.partition_ends"}
    assert not {"pyarrow", "pandas", "numba"} & found
    assert not {f"kraftlog.{name}" for name in layers | of_rows} & found


def test_the_command_of_a_broker_needs_no_arrow():
    found = imported(command("broker", "--help"))
    assert "kraftlog.server.broker" in found
    assert not {"pyarrow", "pandas", "numba", "rich"} & found


def test_pandas_is_there_behind_a_command():
    code = command("segments", str(METADATA), "--format", "csv", "--output", "/dev/null")
    shown = run(f"{code}\nimport pyarrow as pa; print(pa.table({{'a': [1]}}).to_pandas().shape)")
    assert shown == ["(1, 1)"]
