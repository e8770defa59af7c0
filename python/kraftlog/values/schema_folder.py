"""Schemas of a folder: files of a user."""

from __future__ import annotations

import re
from pathlib import Path

from kraftlog.values.schema_store import AVRO, JSON, PROTOBUF, Schema

ENDINGS = {".avsc": AVRO, ".proto": PROTOBUF, ".json": JSON}
_NAME = re.compile(r"(?P<subject>.*?)(\.v(?P<version>[0-9]+))?")


def schema_in_file(name: str) -> Schema | None:
    """Return the schema of a file whose ending says its type; None when the name is not that of a file.

    Parameters
    ----------
    name : str
        A path such as ``schemas/order.avsc``.
    """
    path = Path(name)
    if path.suffix not in ENDINGS or not path.is_file():
        return None
    return Schema(str(path), 1, None, ENDINGS[path.suffix], path.read_text("utf-8"))


def schemas_in(folder: str | Path) -> list[Schema]:
    """Return the schemas of a folder.

    A file is named by the id of its schema, such as ``17.avsc``, or by its subject, ``orders-value.avsc``; a version
    may follow the subject: ``orders-value.v2.avsc``. The ending says the type: ``.avsc``, ``.proto``, or ``.json`` for
    JSON Schema. Other files are left alone.

    Raises
    ------
    ValueError
        When there are none.
    NotADirectoryError
        When it is no folder.
    """
    path = Path(folder)
    if not path.is_dir():
        raise NotADirectoryError(f"{path}: expected a folder with schemas")
    found = []
    for file in sorted(path.iterdir()):
        if file.suffix not in ENDINGS or not file.is_file():
            continue
        text, type_ = file.read_text("utf-8"), ENDINGS[file.suffix]
        if file.stem.isdigit():
            found.append(Schema(f"id {file.stem}", 1, int(file.stem), type_, text))
            continue
        named = _NAME.fullmatch(file.stem)
        assert named is not None
        found.append(Schema(named["subject"], int(named["version"] or 1), None, type_, text))
    if not found:
        raise ValueError(f"{path}: no schemas; expected files that end in {', '.join(ENDINGS)}")
    return found
