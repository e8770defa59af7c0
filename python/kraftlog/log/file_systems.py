"""Which file system a URI means: one of pyarrow's, or one of fsspec's behind the same interface."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from kraftlog.log.remote_path import RemotePath

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def locate(path: RemotePath) -> tuple[Any, str]:
    """Return the ``pyarrow.fs.FileSystem`` that has a path, and what the path is called there.

    Raises
    ------
    ValueError
        When no file system has the path's scheme, or does not know one of its options.
    OSError
        When it cannot be reached.
    """
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    options = path.storage_options
    if endpoint and path.root.startswith("s3://") and not any(name == "endpoint_override" for name, _ in options):
        options += (("endpoint_override", endpoint),)  # pyarrow does not look for it
    file_system, base = _file_system(path.root, options, os.getpid())
    return file_system, f"{base.rstrip('/')}/{path.key}" if path.key else base


@lru_cache(maxsize=64)
def _file_system(root: str, storage_options: tuple[tuple[str, Any], ...], process: int) -> tuple[Any, str]:
    """Return a file system and its name of the root; connections are of no use to a forked process."""
    import pyarrow as pa
    import pyarrow.fs

    scheme, _, authority = root.partition("://")
    options = dict(storage_options)
    try:
        if scheme == "s3":
            return _s3(authority, options), authority
        query = urlencode(options)
        found: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(f"{root}{'/?' if query else ''}{query}")
        return found
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise ValueError(f"{root}: {error}") from error
    except TypeError as error:
        raise ValueError(f"{root}: storage_options {', '.join(options)}: {error}") from error
    return _of_fsspec(root, scheme, options)


def _s3(bucket: str, options: dict[str, Any]) -> Any:
    import pyarrow.fs

    if "endpoint_override" not in options and "region" not in options:
        options["region"] = pyarrow.fs.resolve_s3_region(bucket)
    return pyarrow.fs.S3FileSystem(**options)


def _of_fsspec(root: str, scheme: str, options: dict[str, Any]) -> tuple[Any, str]:
    import pyarrow.fs

    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(f"{root}: pyarrow has no file system for {scheme}://, and fsspec is not installed") from None
    from kraftlog.log.fsspec_files import Handler

    try:
        file_system, base = fsspec.core.url_to_fs(root, **options)
    except (ValueError, ImportError, TypeError) as error:
        raise ValueError(f"{root}: neither pyarrow nor fsspec has a file system for {scheme}://: {error}") from error
    return pyarrow.fs.PyFileSystem(Handler(file_system)), base


@contextmanager
def naming(path: RemotePath, part: str = "") -> Iterator[None]:
    """Make what goes wrong with a file an OSError that names it; the client of a file system may raise anything."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"no such file or directory: {path}") from None
    except ValueError:
        raise
    except Exception as error:
        raise OSError(f"{path}: {part}{error}") from error
