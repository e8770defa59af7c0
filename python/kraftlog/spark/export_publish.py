"""From staged files to a complete output; after a crash, the files show which step to resume.

An output holds ``_kraftlog/<id>`` while an export is under way: ``files`` and ``receipts`` of finished parts, and
``manifest.json`` as soon as all parts are complete. That file is the decision: it settles which files replace which,
and only renames remain. ``_manifest.json`` and then ``_SUCCESS`` are written last.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file

STAGING = "_kraftlog"
MANIFEST = "_manifest.json"
SUCCESS = "_SUCCESS"
DECISION = "manifest.json"


@contextmanager
def only_writer(output: Path) -> Iterator[None]:
    """Keep a second export out of an output while one is under way.

    Raises
    ------
    FileExistsError
        When another export is under way.
    """
    folder = output / STAGING
    lock = folder / "lock"
    file = None
    while file is None:
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(lock)
    with file:
        try:
            yield
        finally:
            with suppress(OSError):  # the folder is not empty while an export is unfinished
                lock.unlink()
                folder.rmdir()


def _locked(lock: Path) -> TextIO | None:
    """Return the lock file, open and locked; None when the export that held the lock has deleted the file."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(lock.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return None
        except BlockingIOError:
            raise FileExistsError(f"{lock.parent.parent}: another export is writing there") from None
        except FileNotFoundError:
            return None
        stack.pop_all()
        return file


def refuse_other_files(output: Path) -> None:
    """Check that an export may use a folder, which need not exist.

    Raises
    ------
    FileExistsError
        When it holds files that belong to no export.
    """
    ours = _files(read_json(output / MANIFEST))
    for decision in (output / STAGING).glob(f"*/{DECISION}"):
        ours |= _files(read_json(decision))
    for path in output.rglob("*"):
        inner = path.relative_to(output)
        if path.is_file() and inner.parts[0][0] not in "_." and str(inner) not in ours:
            raise FileExistsError(f"{path}: not a file of an export; choose an empty folder or one with only an export")


def begin(output: Path, export_id: str, *, overwrite: bool) -> Path:
    """Return the folder that stages an export: the folder of an earlier unfinished call, if there is one.

    Raises
    ------
    FileExistsError
        When the output holds a finished export, or an unfinished one with other options or files, both of which
        ``overwrite`` replaces; or when it holds other files.
    """
    staging = output / STAGING / export_id
    others = [path for path in (output / STAGING).iterdir() if path.is_dir() and path != staging]
    finished = (output / SUCCESS).exists() or ((output / MANIFEST).exists() and not is_decided(staging))
    if finished and not overwrite:
        raise FileExistsError(f"{output}: holds a finished export; overwrite=True replaces it")
    if not overwrite and others:
        raise FileExistsError(
            f"{output}: holds an unfinished export of other options, or of files that have changed since;"
            " overwrite=True discards it"
        )
    refuse_other_files(output)
    for other in others:
        for name in _files(read_json(other / DECISION)) - _files(read_json(output / MANIFEST)):
            _delete(output, name)
        shutil.rmtree(other)
    staging.mkdir(exist_ok=True)
    return staging


def is_decided(staging: Path) -> bool:
    """Whether all parts of an export are written, so that it only has to be published."""
    return (staging / DECISION).exists()


def decide(output: Path, staging: Path, manifest: dict[str, Any]) -> None:
    """Record the decision that these files are the output, and that the files of an earlier one are not."""
    replaced = _files(read_json(output / MANIFEST))
    write_file(staging / DECISION, _json(manifest | {"replaced": sorted(replaced)}))


def publish(output: Path, staging: Path) -> None:
    """Carry out the decision, or what remains of it."""
    manifest = read_json(staging / DECISION)
    (output / SUCCESS).unlink(missing_ok=True)
    disk().sync_folder(output)
    names = [file["path"] for file in manifest["files"]]
    for name in set(manifest.pop("replaced")) - set(names):
        _delete(output, name)
    for name in names:
        staged, final = staging / "files" / name, output / name
        if staged.exists():
            final.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(final)
    for folder in {parent for name in names for parent in (output / name).parents if parent.is_relative_to(output)}:
        disk().sync_folder(folder)
    write_file(output / MANIFEST, _json(manifest))
    write_file(output / SUCCESS, b"")
    shutil.rmtree(staging)


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file; an empty dict if there is no file."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _files(manifest: dict[str, Any]) -> set[str]:
    """Return the files that a manifest puts into the output or replaces there."""
    return {file["path"] for file in manifest.get("files", [])} | set(manifest.get("replaced", []))


def _delete(output: Path, name: str) -> None:
    """Delete a file of an earlier export, and its folders when nothing else is in them."""
    path = output / name
    path.unlink(missing_ok=True)
    for folder in path.relative_to(output).parents:
        if folder != Path():
            with suppress(OSError):
                (output / folder).rmdir()


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()
