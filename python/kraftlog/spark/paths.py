"""Folders that Spark's tasks write to."""

from __future__ import annotations

import re
from pathlib import Path

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(.*)", re.DOTALL)


def local_folder(name: str, folder: str) -> Path:
    """Return a folder of a mounted file system.

    Parameters
    ----------
    name : str
        The name of the option or parameter, for the message.
    folder : str
        May begin with ``file:``. As in Hadoop's paths, ``%``, ``#`` and ``?`` have no special meaning.

    Raises
    ------
    ValueError
        For another URI, such as an object store, which cannot rename files.

    Examples
    --------
    >>> str(local_folder("output", "file:///backup/orders"))
    '/backup/orders'
    """
    uri = _SCHEME.fullmatch(folder)
    if uri is None:
        return Path(folder)
    path = uri[2].removeprefix("//") if uri[2].startswith("///") else uri[2]
    if uri[1].lower() != "file" or not path.startswith("/") or path.startswith("//"):
        raise ValueError(f"{name} is {folder}, not a folder of a mounted file system")
    return Path(path)
