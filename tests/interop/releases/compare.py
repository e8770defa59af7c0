"""Compare what is known of Kafka's records and levels with the jars of a release; ``--write`` takes over what differs.

``python tests/interop/releases/compare.py 4.4.0`` prints a line for each message and each level that differs from
``tests/messages/schemas``, and ends with 1 when there is one. ``tests/messages`` and ``tests/metadata`` compare
kraftlog's definitions and levels with these files, so that they say what a new release wants.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from make import class_path

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "messages" / "schemas"
OF_REQUESTS = {"request", "response", "header"}
NOT_RECORDS = {"AbortedTxn"}  # the entries of .txnindex, which have a reader of their own
FOLDERS = {
    "kafka-clients": "common",
    "kafka-group-coordinator": "group_coordinator",
    "kafka-metadata": "metadata",
    "kafka-raft": "raft",
    "kafka-share-coordinator": "share_coordinator",
    "kafka-storage": "storage",
    "kafka-transaction-coordinator": "transaction_coordinator",
}
VERSIONS, FEATURES = SCHEMAS / "metadata_versions.json", SCHEMAS / "features.json"

Schema = dict[str, Any]


def messages_of(jars: list[Path]) -> Iterator[tuple[Path, Schema]]:
    """Return the messages in jars that are records, and the files that have them here."""
    for jar in jars:
        folder = FOLDERS.get(jar.name.rpartition("-")[0])
        if folder is None:
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if (name.endswith(".json") and "message" in name) or (
                    "common/metadata/" in name and name.endswith("json")
                ):
                    found = without_comments(archive.read(name).decode())
                    if found["type"] not in OF_REQUESTS and found["name"] not in NOT_RECORDS:
                        yield SCHEMAS / folder / Path(name).name, found


def without_comments(text: str) -> Schema:
    """Read Kafka's JSON, in which comments stand on lines of their own, without what is said of fields."""
    lines = (line for line in text.splitlines() if not line.strip().startswith("//"))
    return dict(_without_about(json.loads("\n".join(lines))))


def _without_about(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_about(one) for name, one in value.items() if name != "about"}
    return [_without_about(one) for one in value] if isinstance(value, list) else value


def levels_of(classes: str) -> tuple[list[Schema], Schema]:
    """Return what a release says of the levels of metadata.version, and of those of its other features."""
    command = ["java", "-cp", classes, str(HERE / "Facts.java")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=120)
    versions, features = (json.loads(line) for line in done.stdout.splitlines())
    return versions, features


def differences(release: str, *, write: bool = False) -> list[str]:
    """Return a sentence for each file that says something else than the jars of a release; write it when asked to."""
    classes = class_path(release)
    found: list[str] = []
    seen: set[Path] = set()
    for path, schema in messages_of([Path(jar) for jar in classes.split(":")]):
        seen.add(path)
        if not path.exists() or json.loads(path.read_text()) != schema:
            found.append(f"{path.stem}: {'another' if path.exists() else 'a new'} message in {release}")
            if write:
                path.write_text(json.dumps(schema, indent=1))
    known = {path for folder in FOLDERS.values() for path in (SCHEMAS / folder).glob("*.json")}
    found += [f"{path.stem}: no message of {release}" for path in sorted(known - seen)]
    versions, features = levels_of(classes)
    found += [
        f"metadata.version: {one}" for one in _differing(_by_id(json.loads(VERSIONS.read_text())), _by_id(versions))
    ]
    found += [f"feature: {one}" for one in _differing(json.loads(FEATURES.read_text()), features)]
    if write:
        VERSIONS.write_text("[\n " + ",\n ".join(map(_line, versions)) + "\n]\n")
        FEATURES.write_text(json.dumps(features, indent=1))
    return found


def _by_id(versions: list[Schema]) -> dict[str, Schema]:
    return {one["id"]: one for one in versions}


def _line(version: Schema) -> str:
    return "{" + ", ".join(f'"{name}":{json.dumps(value)}' for name, value in version.items()) + "}"


def _differing(known: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    names = sorted(known.keys() | given.keys())
    return [
        f"{name}: {known.get(name)} is known, {given.get(name)} found"
        for name in names
        if known.get(name) != given.get(name)
    ]


def main() -> None:
    """Print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("release")
    parser.add_argument("--write", action="store_true", help="Take over what differs.")
    given = parser.parse_args()
    found = differences(given.release, write=given.write)
    print("\n".join(found) or f"nothing differs from {given.release}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
