"""Segments in addition to the requested ones: those of whole partitions, and of the transaction coordinators."""

from __future__ import annotations

from dataclasses import replace

from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery, discover
from kraftlog.layout.names import parse_partition_folder
from kraftlog.layout.segment import Segment
from kraftlog.layout.unread import Unread
from kraftlog.tables.lines import line_segments
from kraftlog.tables.unread_files import unreadable
from kraftlog.topics import TRANSACTION_STATE


def coordinator_segments(
    files: Discovery, options: ReadOptions, faults: list[Fault], topic: str = TRANSACTION_STATE
) -> list[Segment]:
    """Return the segments of a coordinator's topic of the log directories that files are in.

    Parameters
    ----------
    files : Discovery
        All replicas, including those of topics that were not requested.
    options : ReadOptions
        Whether to raise at the first fault, and to heal.
    faults : list of Fault
        Receives folders that cannot be listed.
    topic : str
    """
    directories = sorted({segment.folder.absolute().parent for segment in files.segments if segment.topic is not None})
    folders = [folder for directory in directories for folder in disk().matches(directory, f"{topic}-*")]
    listed = replace(files, segments=listed_segments(folders, options, faults))
    return line_segments(listed, [], heals=options.heal)


def listed_segments(folders: list[LogPath], options: ReadOptions, faults: list[Fault]) -> list[Segment]:
    """Return the segments of folders; a folder that cannot be listed is a fault, as in every table."""
    found = Discovery()
    for folder in folders:
        try:
            one = discover(folder)
        except OSError as error:  # of a folder that is named it is raised; of one that was found it is a fault
            topic, partition = parse_partition_folder(folder.name) or (None, None)
            reason = str(error.strerror or error)
            found.unread.append(Unread(folder, 0, reason, topic, partition, error="unreadable_file"))
        else:
            found.segments += one.segments
            found.unread += one.unread
    for fault in unreadable(found):
        if options.strict:
            raise error_from_fault(fault)
        if fault not in faults:
            faults.append(fault)
    return found.segments
