"""Folders that Spark's tasks write to."""

from __future__ import annotations

from pathlib import Path


def local_folder(name: str, folder: str) -> Path:
    """Return a folder of a mounted file system.

    Parameters
    ----------
    name : str
        What the folder was given as, for the message.
    folder : str
        May begin with ``file:``.

    Raises
    ------
    ValueError
        For the URI of something else, such as an object store: there is no renaming there.

    Examples
    --------
    >>> str(local_folder("output", "file:///backup/orders"))
    '/backup/orders'
    """
    path = folder.removeprefix("file://") if folder.startswith("file:///") else folder.removeprefix("file:")
    if "://" in path:
        raise ValueError(f"{name} is {folder}, not a folder of a mounted file system")
    return Path(path)
