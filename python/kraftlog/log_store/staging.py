"""The work of a task: it encodes rows into its own files, which a commit makes parts of logs.

Offsets and sequences count from 0 through the files of a partition, without a producer: the commit sets the final
values.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.encode import Encoder
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.errors import KraftlogError
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.names import LARGEST_PARTITION
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.partition import BatchOptions
from kraftlog.log_store.placing import is_large
from kraftlog.log_store.topics import check_name, check_not_internal
from kraftlog.write.active_segment import fitting

SEGMENT_BYTES = 1 << 30  # Kafka's default of segment.bytes
MARKER_BYTES = 78  # size of the commit marker, which may follow the last batch of a segment


class WriteEndedError(KraftlogError, RuntimeError, kafka_error="PRODUCER_FENCED"):
    """A write that was aborted, or that a recovery ended, while its job still ran."""


@dataclass(frozen=True)
class StagingOptions(BatchOptions):
    """How rows become batches and files.

    Attributes
    ----------
    segment_bytes : int
        Maximum bytes of a file, as Kafka's ``segment.bytes``.
    """

    segment_bytes: int = SEGMENT_BYTES

    def __post_init__(self) -> None:
        least = self.max_batch_bytes + MARKER_BYTES
        if not least <= self.segment_bytes < 2**31:
            raise ValueError(
                f"segment_bytes {self.segment_bytes} is not between {least}, for a batch and a marker, and 2^31 - 1"
            )


@dataclass(frozen=True)
class StagedFile:
    """A file of batches of one partition, ready for commit; plain values, which a task sends to the driver.

    Attributes
    ----------
    path : str
        Path in the write's folder.
    task, number : int
        Files of a partition follow one another by the number of the task, then by their own.
    """

    topic: str
    partition: int
    path: str
    task: int
    number: int
    size_in_bytes: int
    records_count: int
    batches: int


class Stager:
    """Encodes the rows of one attempt at one task.

    Parameters
    ----------
    folder : Path
        Folder of the write.
    options : StagingOptions
    task : int
        Number of the task; attempts at the same one share it, and only one of them may be committed.

    Raises
    ------
    WriteEndedError
        When the write's folder is gone.
    """

    def __init__(self, folder: Path, options: StagingOptions, *, task: int) -> None:
        self._write_folder = folder
        self._folder = folder / f"{task}-{uuid.uuid4().hex}"
        self._options = options
        self._task = task
        self._partitions: dict[tuple[str, int], _PartitionFiles] = {}
        try:
            disk().make_new_folder(self._folder)
        except FileNotFoundError:
            raise WriteEndedError(f"{folder}: the write was aborted or has ended; its folder is gone") from None

    def write(self, topic: str, partition: int, rows: pa.RecordBatch) -> None:
        """Add rows to a partition.

        Parameters
        ----------
        topic : str
        partition : int
        rows : pyarrow.RecordBatch
            Rows for ``Encoder.write``; without a column of timestamps they get the current time.

        Raises
        ------
        RecordTooLargeError
            When a record does not fit a batch.
        ValueError
            When Kafka does not allow the topic or the partition.
        """
        files = self._partitions.get((topic, partition))
        if files is None:
            check_topic(topic)
            if not 0 <= partition <= LARGEST_PARTITION:
                raise ValueError(f"partition {partition} of {topic} is not between 0 and {LARGEST_PARTITION}")
            number = len(self._partitions)
            files = _PartitionFiles(self._folder / str(number), self._options)
            self._partitions[topic, partition] = files
        files.write(rows)

    def finish(self) -> list[StagedFile]:
        """Close all files, and wait until the large ones are on disk; the others will be copied.

        Returns
        -------
        list of StagedFile
            The files to commit.
        """
        staged = []
        for (topic, partition), files in self._partitions.items():
            for number, (path, headers) in enumerate(files.finish()):
                at = str(path.relative_to(self._write_folder))
                size, count = int(ends(headers)[-1]), int(headers["records_count"].sum(dtype=np.int64))
                staged.append(StagedFile(topic, partition, at, self._task, number, size, count, len(headers)))
        return staged


def check_topic(topic: str) -> None:
    """Raise a ValueError for an invalid topic name, or for an internal topic."""
    try:
        check_name(topic, ())
        check_not_internal(topic)
    except InvalidTopicError as error:
        raise ValueError(str(error)) from None


def headers_path(path: Path) -> Path:
    """Return the companion of a staged file with the headers of its batches, as staged."""
    return path.with_suffix(".headers")


def read_headers(path: Path) -> Headers:
    """Return the headers of the batches of a staged file."""
    return np.frombuffer(disk().read_bytes(headers_path(path)), HEADER_DTYPE)


class _PartitionFiles:
    """The staged files of one partition; offsets and sequences count from 0 through all of them."""

    def __init__(self, stem: Path, options: StagingOptions) -> None:
        self._stem = stem
        self._most_bytes = options.segment_bytes - MARKER_BYTES
        self._encoder = Encoder(
            compression=options.compression,
            compression_level=options.compression_level,
            max_batch_bytes=options.max_batch_bytes,
            base_offset=0,
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        self._files: list[Path] = []
        self._size = 0
        self._base_offset = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._encoder.timestamp_ms = time.time_ns() // 1_000_000
        self._encoder.write(rows)
        self._append(self._encoder.take())

    def finish(self) -> list[tuple[Path, Headers]]:
        """Return the files with their headers."""
        self._append(self._encoder.finish())
        files = [(path, read_headers(path)) for path in self._files]
        for path, headers in files:
            if is_large(headers):
                disk().sync_file(path)
        return files

    def _append(self, batches: pa.Buffer) -> None:
        view = memoryview(batches).cast("B")
        for headers in HeaderScan(view).headers() if len(view) else ():
            while len(headers):
                count = self._fitting(headers)
                if count:
                    self._write(view, headers[:count])
                    headers = headers[count:]
                else:
                    self._start_file(int(headers["base_offset"][0]))

    def _fitting(self, headers: Headers) -> int:
        """Return how many of the next batches fit the current file; an empty one takes any batch."""
        if not self._files:
            return 0
        return fitting(
            headers,
            size=self._size,
            most_bytes=self._most_bytes,
            base_offset=self._base_offset,
            most_offsets=LARGEST_RELATIVE_OFFSET - 1,  # one more for the marker
        )

    def _start_file(self, base_offset: int) -> None:
        self._files.append(self._stem.with_name(f"{self._stem.name}-{len(self._files)}.log"))
        self._size, self._base_offset = 0, base_offset

    def _write(self, view: memoryview, headers: Headers) -> None:
        # opened for each piece: a task may write to more partitions than a process may have files open
        begin, end = int(headers["position"][0]), int(ends(headers)[-1])
        path = self._files[-1]
        with disk().open_append(path) as file:
            file.append(view[begin:end])
        staged = headers.copy()
        staged["position"] += self._size - begin
        with disk().open_append(headers_path(path)) as file:
            file.append(staged.tobytes())
        self._size += end - begin
