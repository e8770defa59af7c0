"""Files are reached through ``kraftlog.disk`` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "kraftlog"

ALLOWED = {
    "disk": "what the rule is about",
    "messages/definition_text.py": "definitions that come with the package",
    "messages/kafka_json.py": "definitions that come with the package, as Kafka writes them",
    "cli/__init__.py": "standard output",
    "cli/pack.py": "files of the user's own input and output",
    "cli/pack_input.py": "files of the user's own input and output",
    "cli/shell_terminal.py": "the history of commands",
    "values/protobuf_schema.py": "what protoc reads and writes",
    "values/schema_folder.py": "schemas of the user's own",
    "spark/export.py": "files of the user's own output",
    "spark/export_part.py": "files of the user's own output",
    "spark/export_publish.py": "files of the user's own output",
    "spark/quarantine.py": "files of the user's own output",
    "spark/java.py": "the Java runtime of Spark",
    "spark/sink.py": "Spark's own checkpoint folder",
}

NOT_YET = {
    "cli/shell.py",
    "layout/listing.py",
    "metadata_log/image_snapshot.py",
    "spark/still_there.py",
}
"""Modules that still do. The list shrinks; a module that no longer does must leave it."""

METHODS = {
    *("read_bytes", "read_text", "write_bytes", "write_text", "exists", "is_dir", "is_file", "iterdir", "glob"),
    *("rglob", "mkdir", "rmdir", "unlink", "touch", "rename", "stat", "lstat", "samefile", "symlink_to", "hardlink_to"),
}
"""Methods of ``Path`` and nothing else that is used here."""

OF_OS = {
    *("access", "chmod", "chown", "fchown", "fdatasync", "fsync", "fstat", "ftruncate", "link", "listdir", "lseek"),
    *("makedirs", "mkdir", "open", "pread", "preadv", "pwrite", "pwritev", "read", "readlink", "remove", "rename"),
    *("replace", "rmdir", "scandir", "stat", "statvfs", "symlink", "truncate", "unlink", "utime", "walk", "write"),
}
MODULES = {"mmap", "fcntl", "glob", "shutil", "tempfile"}
HARMLESS = {("glob", "has_magic"), ("shutil", "get_terminal_size"), ("shutil", "which")}


def calls(tree: ast.Module) -> Iterator[str]:
    """Return the calls of a module that reach a file system."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            yield "open"
        if not isinstance(called, ast.Attribute):
            continue
        owner = called.value.id if isinstance(called.value, ast.Name) else ""
        is_path = bool(node.args) and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        if owner == "os":
            if called.attr in OF_OS:
                yield f"os.{called.attr}"
        elif owner in MODULES:
            if (owner, called.attr) not in HARMLESS:
                yield f"{owner}.{called.attr}"
        elif called.attr in METHODS and not _is_asked_of_disk(called.value):
            yield f".{called.attr}"
        elif called.attr == "open" and is_path and set(str(node.args[0].value)) <= set("rwxab+t"):  # type: ignore[attr-defined]
            yield ".open"


def _is_asked_of_disk(value: ast.expr) -> bool:
    """Whether the object that a method is called on is ``disk()``, or a listing that was made by it."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "disk"
    return isinstance(value, ast.Name) and value.id == "listing"


def users() -> dict[str, set[str]]:
    """Return what each module outside of the allowed ones calls."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name not in ALLOWED and name.split("/")[0] not in ALLOWED:
            called = set(calls(ast.parse(path.read_text("utf-8"))))
            if called:
                found[name] = called
    return found


def test_only_disk_reaches_files():
    found = users()
    assert {name: called for name, called in found.items() if name not in NOT_YET} == {}
    assert NOT_YET - found.keys() == set()


def test_what_is_allowed_is_there():
    assert [name for name in ALLOWED if not (PACKAGE / name).exists()] == []
