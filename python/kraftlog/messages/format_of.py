"""The format of a message: the log whose records have it."""

from __future__ import annotations

import re
from pathlib import Path

from kraftlog import topics

METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE = "metadata", "consumer_offsets", "transaction_state"
SHARE_GROUP_STATE, REMOTE_LOG_METADATA = "share_group_state", "remote_log_metadata"
FRAMED = frozenset({METADATA, REMOTE_LOG_METADATA})  # formats whose values have their type in a frame
OFFSET_SYNCS, CHECKPOINTS, HEARTBEATS = "offset_syncs", "checkpoints", "heartbeats"  # of MirrorMaker 2
FORMATS = (
    *(METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, REMOTE_LOG_METADATA),
    *(OFFSET_SYNCS, CHECKPOINTS, HEARTBEATS),
)
# Formats whose keys are of one type, which they do not name; values begin with their version if there are several.
UNNAMED_KEYS = frozenset({OFFSET_SYNCS, CHECKPOINTS, HEARTBEATS})
VERSIONLESS = frozenset({OFFSET_SYNCS})
_FORMATS_OF_TOPICS = {
    topics.CLUSTER_METADATA: METADATA,
    topics.CONSUMER_OFFSETS: CONSUMER_OFFSETS,
    topics.TRANSACTION_STATE: TRANSACTION_STATE,
    topics.SHARE_GROUP_STATE: SHARE_GROUP_STATE,
    topics.REMOTE_LOG_METADATA: REMOTE_LOG_METADATA,
}
_FORMATS_OF_MIRRORS = {
    re.compile(r"mm2-offset-syncs\..+\.internal"): OFFSET_SYNCS,
    re.compile(r".+\.checkpoints\.internal"): CHECKPOINTS,
    re.compile(r"(.+\.)?heartbeats"): HEARTBEATS,
}
# Releases before 4.0 have all messages of coordinators in one folder.
_NAMES = {
    "TransactionLog": TRANSACTION_STATE,
    "ShareSnapshot": SHARE_GROUP_STATE,
    "ShareUpdate": SHARE_GROUP_STATE,
}
_FOLDERS = {
    "group-coordinator": CONSUMER_OFFSETS,
    "share-coordinator": SHARE_GROUP_STATE,
    "transaction-coordinator": TRANSACTION_STATE,
}


def format_of_topic(topic: str) -> str | None:
    """Return the name of the format of a topic's records; None for a topic of users.

    Examples
    --------
    >>> format_of_topic("__consumer_offsets"), format_of_topic("orders")
    ('consumer_offsets', None)
    >>> format_of_topic("primary.checkpoints.internal")
    'checkpoints'
    """
    found = _FORMATS_OF_TOPICS.get(topic)
    return found or next((name for names, name in _FORMATS_OF_MIRRORS.items() if names.fullmatch(topic)), None)


def is_certain(format_name: str | None) -> bool:
    """Whether the name of a topic proves the format of its records; users may have a topic ``heartbeats``."""
    return format_name is not None and format_name != HEARTBEATS


def format_of(name: str, role: str, file: Path) -> str | None:
    """Return the name of the format of a message in Kafka's source; None if it is not a record of a log.

    Parameters
    ----------
    name, role : str
        Name and role of the message.
    file : Path
        File of the definition.
    """
    if role == "metadata":
        return REMOTE_LOG_METADATA if name.startswith("Remote") else METADATA
    if role == "data":
        return None
    known = _NAMES.get(name.removesuffix("Key").removesuffix("Value"))
    folders = (_FOLDERS.get(folder.name.replace("_", "-")) for folder in file.absolute().parents)
    return known or next((found for found in folders if found), CONSUMER_OFFSETS)
