"""What Kafka writes of an image at each lower metadata.version is still what tests/metadata compares kraftlog with."""

from __future__ import annotations

import json
from pathlib import Path

from jvm import Jvm, Line

from golden_files import lines

FOLDER = Path(__file__).parent.parent / "metadata" / "downgrade"


def test_kafka_writes_the_same(java: Jvm) -> None:
    """In whichever order: that of Kafka's maps changes from run to run."""
    printed = [json.loads(line) for line in java.run("Downgraded", lines=lines(FOLDER / "records.jsonl"))]
    assert [_in_order(line) for line in printed] == [_in_order(line) for line in lines(FOLDER / "kafka.jsonl")]


def _in_order(line: Line) -> Line:
    records = sorted(json.dumps(record, sort_keys=True) for record in line["records"])
    return {**line, "losses": [sorted(loss) for loss in line["losses"]], "records": records}
