"""Segments in addition to the requested ones: those of whole partitions, and of the transaction coordinators."""

from __future__ import annotations

from dataclasses import replace

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.discover import Discovery, discover
from kraftlog.layout.names import parse_partition_folder
from kraftlog.layout.segment import Segment
from kraftlog.layout.unread import Unread
from kraftlog.read.log_pass import Pass
from kraftlog.tables.lines import line_segments
from kraftlog.tables.unread_files import unreadable
from kraftlog.topics import TRANSACTION_STATE


def coordinator_segments(files: Discovery, read: Pass, topic: str = TRANSACTION_STATE) -> list[Segment]:
    """Return the segments of a coordinator's topic of the log directories that files are in, or those at their cut.

    Parameters
    ----------
    files : Discovery
        All replicas, including those of topics that were not requested.
    read : Pass
        Receives folders that cannot be listed.
    topic : str
    """
    segments = [one for one in files.segments if one.topic == topic and not one.state]
    if not any(one.is_cut for one in segments):
        directories = sorted({one.folder.absolute().parent for one in files.segments if one.topic is not None})
        folders = [folder for directory in directories for folder in disk().matches(directory, f"{topic}-*")]
        segments = listed_segments(folders, read)
    return line_segments(replace(files, segments=segments), [], heals=read.options.heal)


def listed_segments(folders: list[LogPath], read: Pass) -> list[Segment]:
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
        if fault not in read.faults:
            read.add(fault)
    return found.segments
