"""What is known of messages and levels is what the newest release says of itself, and it reads what is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jvm
import pytest
from make import class_path

from compare import differences
from golden_files import GOLDEN, lines
from kraftlog.codec.metadata_version import NEWEST_LEVEL
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_snapshot import write_image

RELEASE = "4.4.0"
LIMIT = 120
LOG = GOLDEN / "unregistered" / "log" / "__cluster_metadata-0"
KEPT = GOLDEN / "unregistered" / "image.jsonl"


@pytest.fixture(scope="module")
def classes() -> str:
    """Return the class path of the release, or skip on a machine that has no Maven or no JDK."""
    reason = jvm.missing()
    if reason is not None:
        pytest.skip(reason)
    return class_path(RELEASE)


@pytest.mark.usefixtures("classes")
def test_nothing_differs_from_its_jars() -> None:
    assert differences(RELEASE) == []


def test_its_classes_make_the_image_that_is_kept(classes: str) -> None:
    """Of the log of which ``tests/metadata`` compares the image."""
    (file,) = LOG.glob("*.log")
    assert _image(classes, file) == _in_order(lines(KEPT))


def test_it_reads_a_snapshot_of_kraftlogs(classes: str, tmp_path: Path) -> None:
    """At the newest level: the image is that of the log."""
    at = image_at(MetadataLog.open(LOG), None, faults := [])
    assert (faults, at.image.metadata_version) == ([], NEWEST_LEVEL)
    assert _image(classes, write_image(tmp_path, at)) == _in_order(lines(KEPT))


def _image(classes: str, file: Path) -> list[str]:
    """Return the image that the classes of the release make of a file."""
    program = str(Path(__file__).parent / "releases" / "Unregister.java")
    command = ["java", "-cp", classes, program, "image", str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=LIMIT)
    return _in_order(json.loads(line) for line in done.stdout.splitlines())


def _in_order(records: Iterable[dict[str, Any]]) -> list[str]:
    found = []
    for record in records:
        data = record["data"]
        if "features" in data:
            data = data | {"features": sorted(data["features"], key=lambda one: one["name"])}
        found.append(json.dumps(record | {"data": data}, sort_keys=True))
    return sorted(found)
