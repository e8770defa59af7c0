"""Where schemas come from: a folder, or the topic ``_schemas`` beside the logs that are read."""

from __future__ import annotations

from pathlib import Path

from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery, discover
from kraftlog.read.log_pass import Pass
from kraftlog.topics import SCHEMAS
from kraftlog.values.schema_folder import schemas_in
from kraftlog.values.schema_store import SchemaStore
from kraftlog.values.schema_topic import schemas_of


def find_schemas(found: Discovery, given: SchemaStore | str | Path | None, faults: list[Fault]) -> SchemaStore:
    """Return the schemas that were given, or a folder has; else those of ``_schemas`` in the same log directory.

    Parameters
    ----------
    found : Discovery
        What is read; the topic may be among it, or lie beside it.
    given : SchemaStore, path or None
    faults : list of Fault
        Receives what cannot be read of the topic.
    """
    if isinstance(given, SchemaStore):
        return given
    if given is not None:
        return SchemaStore(schemas_in(given), str(given))
    of_topic = found.only(lambda topic, _: topic == SCHEMAS).segments
    if not of_topic:
        folders = sorted({segment.folder.parent / f"{SCHEMAS}-0" for segment in found.segments}, key=str)
        for folder in folders:
            try:
                of_topic += discover(folder).segments
            except (FileNotFoundError, ValueError):
                continue
    if not of_topic:
        return SchemaStore([], f"the log directory, which has no topic {SCHEMAS}")
    return SchemaStore(schemas_of(of_topic, Pass(faults=faults)), f"topic {SCHEMAS}")
