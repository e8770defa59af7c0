"""Paths for display: URIs may contain passwords and keys."""

from __future__ import annotations

import re

_QUERY = re.compile(r"\?[^/?=]+=.*")  # a single question mark belongs to a glob
_USER = re.compile(r"(?<=://)([^/:@]*)[^/]*@")
_AZURE = re.compile(r"(abfs|wasb)s?://", re.IGNORECASE)  # there it is the container rather than the user


def shown_uri(path: str) -> str:
    """Return a user's path; a URI without user, password and query.

    Parameters
    ----------
    path : str
        A URI, or a local path, which is returned unchanged.

    Examples
    --------
    >>> from kraftlog.disk.shown_uri import shown_uri
    >>> shown_uri("s3://key:secret@bucket/logs/orders-?/?session_token=secret")
    's3://bucket/logs/orders-?/'
    """
    if "://" not in path:
        return path
    has_container = _AZURE.match(path)
    return _USER.sub(lambda user: f"{user[1]}@" if has_container and user[1] else "", _QUERY.sub("", path))
