"""The files that a real Kafka wrote, and the answers of Kafka's own classes (tests/golden)."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file that may be gzipped."""
    zipped = path.with_name(path.name + ".gz")
    text = gzip.decompress(zipped.read_bytes()).decode() if zipped.exists() else path.read_text()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def scenarios() -> list[Path]:
    """Return every folder with log files and answers, those of damaged files left out."""
    found = [folder.parent for folder in GOLDEN.glob("**/expected") if "damaged" not in folder.parts]
    return sorted(found)


def damaged_cases() -> list[Path]:
    """Return the folders of damaged files."""
    return sorted(folder.parent for folder in GOLDEN.glob("damaged/*/expected"))


def name_of(folder: Path) -> str:
    """Return the name of a scenario, for test ids."""
    return str(folder.relative_to(GOLDEN))


def log_files(folder: Path) -> list[Path]:
    """Return the files with record batches of a scenario."""
    return sorted([*folder.glob("log/**/*.log"), *folder.glob("log/**/*.checkpoint")])


def by_file(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return rows by the file that they are of."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["file"], []).append(row)
    return grouped


def hex_or_none(data: bytes | None) -> str | None:
    """Return bytes as the answers have them."""
    return None if data is None else data.hex()


def as_answer(row: dict[str, Any]) -> dict[str, Any]:
    """Return a decoded record in the form of expected/records.jsonl."""
    value = row["value"]
    answer: dict[str, Any] = {
        "batch_position": row["position"],
        "offset": row["offset"],
        "timestamp": row["timestamp_ms"],
        "timestamp_type": row["timestamp_type"],
        "sequence": row["sequence"],
        "key": hex_or_none(row["key"]),
        "headers": [[header["key"], hex_or_none(header["value"])] for header in row["headers"]],
        "control_type": row["control_type"],
    }
    if value is not None and len(value) > 64:
        return answer | {"value_len": len(value), "value_sha256": hashlib.sha256(value).hexdigest()}
    return answer | {"value": hex_or_none(value)}


ANSWER_COLUMNS = [
    "position",
    "offset",
    "timestamp_ms",
    "timestamp_type",
    "sequence",
    "key",
    "value",
    "headers",
    "control_type",
]
