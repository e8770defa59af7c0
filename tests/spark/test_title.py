"""What a job says of what it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from golden_files import GOLDEN
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.title import title

LOG = str(GOLDEN / "transactions" / "log")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"table": "batches"}, "kraftlog batches of"),
        ({"subscribePattern": "or.*", "isolationLevel": "read_committed"}, ", topics like or.*, read_committed, "),
        ({"assign": '{"orders": [2, 0]}'}, ", partitions orders-0 orders-2, "),
        ({"subscribe": "orders", "endingTimestamp": "1767225600000"}, ", times to 1767225600000, "),
        (
            {"assign": '{"orders": [0]}', "startingOffsets": '{"orders": {"0": -2}}', "endTimestamp": "9"},
            ", offsets from orders-0:-2, only timestamp < 9, ",
        ),
    ],
)
def test_options(options: dict[str, str], text: str):
    request = parse_request({"path": LOG, **options})
    assert text in title(request, plan_parts(request))


def test_how_much_it_is():
    request = parse_request({"path": LOG})
    logs = [path.stat().st_size for path in Path(LOG).rglob("*.log")]
    expected = f"kraftlog records of {LOG}, {len(logs)} parts of {sum(logs)} bytes"
    assert title(request, plan_parts(request)) == expected


def test_no_password_is_shown():
    request = replace(parse_request({"path": LOG}), paths=("s3://key:secret@bucket/logs?session_token=secret",))
    assert title(request, []) == "kraftlog records of s3://bucket/logs, 0 parts of 0 bytes"
