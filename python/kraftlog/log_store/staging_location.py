"""A location for staged files that the driver and the tasks of a write reach when they share no log directory.

Each write has a folder there, as in a log directory, with the same names of files. The driver fetches the files into
the log directory before it commits them.

A write is under way as long as its folder has the file ``begun``. To end it, that file is removed before all others; a
task looks for it after it has sent its files. So either the task finds that the write has ended and removes its files,
or they are there when the others are removed. What a task leaves that dies in between is removed at the end of
the next write.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import RemotePath, StorageOptions, log_path
from kraftlog.layout.names import STORE_FOLDER
from kraftlog.log_store.staging import StagedFile, WriteEndedError, headers_path
from kraftlog.log_store.write_id import WriteId, is_earlier

_BEGUN = "begun"

_LOGGER = logging.getLogger("kraftlog.log_store")


@dataclass(frozen=True)
class StagingLocation:
    """A folder of a file system of pyarrow or fsspec.

    Attributes
    ----------
    folder : RemotePath
        Of all writes.
    """

    folder: RemotePath

    @classmethod
    def of(cls, path: str, storage_options: StorageOptions) -> StagingLocation:
        """Return the location of a URI, or of a folder that is mounted on all machines.

        Raises
        ------
        ValueError
            When a folder is not absolute, or an option does not have a plain value.
        """
        folder = log_path(path, storage_options)
        if isinstance(folder, Path):
            if not folder.is_absolute():
                raise ValueError(f"{path!r} is neither a URI such as s3://bucket/staging nor an absolute path")
            folder = RemotePath("file://", str(folder).strip("/"))
        return cls(folder / STORE_FOLDER)

    def begin(self, write: WriteId) -> None:
        """Begin a write; one that has begun goes on."""
        if not self._is_under_way(write):
            disk().put(self._begun(write), lambda: [b""])

    def send(self, write: WriteId, folder: Path) -> None:
        """Send the files that a task has staged in a local folder.

        Raises
        ------
        WriteEndedError
            When the write was committed or aborted; nothing of the task stays then.
        OSError
            When they cannot be sent.
        """
        if not self._is_under_way(write):
            raise WriteEndedError(f"{self._of(write)}: the write was aborted or has ended")
        attempts = [entry.name for entry in disk().entries(folder)]
        for attempt in attempts:
            for entry in disk().entries(folder / attempt):
                disk().send(folder / attempt / entry.name, self._of(write) / attempt / entry.name)
        if not self._is_under_way(write):
            for attempt in attempts:
                disk().remove_remote_tree(self._of(write) / attempt)
            raise WriteEndedError(f"{self._of(write)}: the write was aborted or has ended while its files were sent")

    def fetch(self, write: WriteId, staged: Iterable[StagedFile], folder: Path) -> None:
        """Fetch the files of a write into its folder in the log directory.

        Raises
        ------
        WriteEndedError
            When one of them is gone.
        OSError
            When they cannot be fetched, or written.
        """
        for file in staged:
            target = folder / file.path
            if disk().entry(target.parent) is None:
                disk().make_new_folder(target.parent)
            for path in (target, headers_path(target)):
                source = self._of(write) / target.parent.name / path.name
                try:
                    disk().fetch(source, path)
                except FileNotFoundError as error:
                    raise WriteEndedError(f"{source}: the write was aborted or has ended; its file is gone") from error

    def end(self, write: WriteId) -> None:
        """Remove the files of a write, of earlier writes of its transactional id, and of others that have ended.

        When that fails there is a warning: the next end of a write removes them.
        """
        try:
            tree = disk().tree(self.folder)
            for entry in tree[self.folder]:
                folder = self.folder / entry.name
                there = [each.name for each in tree.get(folder, [])]
                if entry.name == write.name or is_earlier(entry.name, write):
                    with suppress(FileNotFoundError):
                        disk().remove(folder / _BEGUN)
                    disk().remove_remote_tree(folder)
                elif _BEGUN not in there:
                    for attempt in there:  # not the folder: the write may be tried again meanwhile
                        disk().remove_remote_tree(folder / attempt)
        except FileNotFoundError:
            return
        except OSError as error:
            _LOGGER.warning("%s: staged files could not be removed: %s", self.folder, error)

    def _of(self, write: WriteId) -> RemotePath:
        return self.folder / write.name

    def _begun(self, write: WriteId) -> RemotePath:
        return self._of(write) / _BEGUN

    def _is_under_way(self, write: WriteId) -> bool:
        return disk().entry(self._begun(write)) is not None
