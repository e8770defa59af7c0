"""Definitions of messages from the JSON files in Kafka's source, of any release."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from kraftlog.messages.definition import Definition
from kraftlog.messages.definition_text import ROLES
from kraftlog.messages.earlier_keys import with_api_keys
from kraftlog.messages.format_of import format_of
from kraftlog.messages.kafka_fields import read_fields, text_of, versions_of

_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def load_folder(path: str | PathLike[str]) -> dict[str, Definition]:
    """Return the definitions in a folder and its subfolders, by name.

    Parameters
    ----------
    path : str or path-like
        For example ``metadata/src/main/resources/common/metadata`` of Kafka's source, or all of it. Requests, responses
        and headers, which are not messages of logs, and other JSON files are ignored.

    Returns
    -------
    dict of str to Definition
        Definitions for ``Catalog.with_definitions``.

    Raises
    ------
    ValueError
        When a file cannot be read; the message names file and field.
    """
    found: dict[str, Definition] = {}
    files: dict[str, Path] = {}
    for file in sorted(Path(path).rglob("*.json")):
        try:
            definition = _read(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}: {error}") from error
        if definition is None:
            continue
        if found.setdefault(definition.name, definition) != definition:
            raise ValueError(f"{file}: {files[definition.name]} has another {definition.name}")
        files[definition.name] = file
    if not found:
        raise ValueError(f"{path}: no definitions of messages")
    return with_api_keys(found, files)


def _read(file: Path) -> Definition | None:
    source = json.loads(_STRING_OR_COMMENT.sub(_blank_comment, file.read_text("utf-8")))
    if not isinstance(source, dict) or "validVersions" not in source or source.get("type") not in ROLES:
        return None
    return _definition(source, file)


def _blank_comment(match: re.Match[str]) -> str:
    text = match[0]
    return text if text.startswith('"') else re.sub(r"[^\n]+", " ", text)


def _definition(source: Mapping[str, Any], file: Path) -> Definition:
    name, role = text_of(source, "name"), text_of(source, "type")
    api_key = source.get("apiKey")
    if api_key is not None and (isinstance(api_key, bool) or not isinstance(api_key, int)):
        raise ValueError(f'"apiKey" is a number, not {api_key!r}')
    try:
        valid = versions_of(source, "validVersions")
        flexible = versions_of(source, "flexibleVersions").within(valid)
        fields = read_fields(source, valid)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return Definition(name, role, api_key, valid, flexible, fields, format_of(name, role, file))
