"""Schemas of Protocol Buffers: their text to descriptors, by protoc."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from kraftlog.stream import optional_package
from kraftlog.values.schema_store import PROTOBUF, Schema, SchemaStore

_MAIN = "kraftlog_schema.proto"
_MAP_ENTRY = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;")
_MARK = "option no_standard_descriptor_accessor = true;"  # of which schemas make no use
_USER, _HOW = "the format protobuf", "'kraftlog[protobuf]'"


def file_descriptor(schema: Schema, store: SchemaStore) -> Any:
    """Return the descriptor of a schema's file, in a pool of its own.

    Registries may write a map as the message that it stands for, which protoc refuses: it is given a mark instead.

    Raises
    ------
    ValueError
        When protoc refuses it, or a schema that it uses is not there.
    ImportError
        When protobuf or grpcio-tools is not installed.
    """
    optional_package("grpc_tools", _USER, _HOW)  # which needs protobuf
    pool_module = optional_package("google.protobuf.descriptor_pool", _USER)
    messages = optional_package("google.protobuf.descriptor_pb2", _USER)
    if schema.type != PROTOBUF:
        raise ValueError(f"{schema} is of type {schema.type}, expected {PROTOBUF}")
    files = {name: used.schema for name, used in store.references_of(schema)} | {_MAIN: schema.schema}
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{schema} uses a schema as {name!r}, which is no path below a folder")
    found = messages.FileDescriptorSet.FromString(_compiled(schema, files))
    pool = pool_module.DescriptorPool()
    for file in found.file:
        if _MAP_ENTRY.search(files.get(file.name, "")):
            _with_maps(file.message_type)
        pool.Add(file)
    return pool.FindFileByName(_MAIN)


def _with_maps(messages: Any) -> None:
    """Make maps of the messages that have the mark, and of those within them."""
    for message in messages:
        if message.options.no_standard_descriptor_accessor:
            message.options.ClearField("no_standard_descriptor_accessor")
            message.options.map_entry = True
        _with_maps(message.nested_type)


def _compiled(schema: Schema, files: dict[str, str]) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(_MAP_ENTRY.sub(_MARK, text), "utf-8")
        output = folder / "descriptors"
        options = ["--include_imports", f"--descriptor_set_out={output}", f"-I{folder}"]
        command = [sys.executable, "-m", "grpc_tools.protoc", *options, _MAIN]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines()
            raise ValueError(f"{schema}: protoc refuses it: {reason[0] if reason else 'without a reason'}")
        return output.read_bytes()


def message_at(file: Any, indexes: list[int]) -> Any:
    """Return the message that a path of indexes names, as serializers write it; None when there is none."""
    messages = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        found = messages[index]
        messages = list(found.nested_types)
    return found


def message_named(file: Any, name: str | None) -> Any:
    """Return the message of a file that has a full name; None when there is none."""
    try:
        return None if name is None else file.pool.FindMessageTypeByName(name)
    except KeyError:
        return None
