"""The file system of a URI: one of pyarrow's, or one of fsspec's with the same interface."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from kraftlog.disk.remote_path import RemotePath
from kraftlog.disk.shown_uri import shown_uri

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

# Arguments of pyarrow.fs.S3FileSystem that are not texts; it takes any text as true.
_S3_FLAGS = (
    "anonymous",
    "background_writes",
    "allow_delayed_open",
    "allow_bucket_creation",
    "allow_bucket_deletion",
    "check_directory_existence_before_creation",
    "force_virtual_addressing",
)
_S3_SECONDS: dict[str, type[int] | type[float]] = {
    "request_timeout": float,
    "connect_timeout": float,
    "load_frequency": int,
}
_FLAGS = {"true": True, "false": False}


def locate(path: RemotePath) -> tuple[Any, str]:
    """Return the ``pyarrow.fs.FileSystem`` of a path, and the name of the path in it.

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
        options += (("endpoint_override", endpoint),)  # pyarrow does not check it
    with naming(path, passes=ValueError):
        file_system, base = _file_system(path.root, options, os.getpid())
    return file_system, f"{base.rstrip('/')}/{path.key}" if path.key else base


@lru_cache(maxsize=64)
def _file_system(root: str, storage_options: tuple[tuple[str, Any], ...], process: int) -> tuple[Any, str]:
    """Return a file system and its name of the root; a forked process cannot use the connections."""
    import pyarrow as pa
    import pyarrow.fs

    scheme, _, authority = root.partition("://")
    options = dict(storage_options)
    try:
        if scheme == "s3":
            return _s3(authority, options), authority
        if scheme == "file":
            return pyarrow.fs.LocalFileSystem(), "/"
        query = urlencode(options)
        found: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(f"{root}{'/?' if query else ''}{query}")
        return found
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            if options:  # the error may quote secret values
                names = ", ".join(options)
                raise ValueError(f"{shown_uri(root)}: cannot be opened with storage_options {names}") from None
            raise ValueError(f"{shown_uri(root)}: {_shown(error, root)}") from None
    except TypeError as error:
        raise ValueError(f"{shown_uri(root)}: storage_options {', '.join(options)}: {error}") from error
    return _of_fsspec(root, scheme, options)


def _s3(bucket: str, options: dict[str, Any]) -> Any:
    import pyarrow.fs

    if "endpoint_override" not in options and "region" not in options:
        options["region"] = pyarrow.fs.resolve_s3_region(bucket)
    return pyarrow.fs.S3FileSystem(**{name: _s3_value(bucket, name, value) for name, value in options.items()})


def _s3_value(bucket: str, name: str, value: Any) -> Any:
    """Return an argument in the type for S3; those of a URI are texts."""
    if not isinstance(value, str):
        return value
    if name in _S3_FLAGS:
        if value.lower() not in _FLAGS:
            raise ValueError(f"s3://{bucket}: storage option {name} is {value!r}, not true or false")
        return _FLAGS[value.lower()]
    if name in _S3_SECONDS:
        try:
            return _S3_SECONDS[name](value)
        except ValueError:
            raise ValueError(f"s3://{bucket}: storage option {name} is {value!r}, not a number of seconds") from None
    return value


def open_file(file_system: Any, where: str, size: int | None = None) -> Any:
    """Open a file from ``locate``, for ``size()`` and ``read_at(size, start)``.

    fsspec need not be asked for a size from a listing. pyarrow requests it in any case: its ``open_input_file`` takes
    nothing but a path, and the ``open`` of a dataset's fragment (up to 26.0) drops the ``file_size`` that it was given.
    """
    import pyarrow.fs

    if isinstance(file_system, pyarrow.fs.PyFileSystem):
        return file_system.handler.open_range_file(where, size)
    return file_system.open_input_file(where)


def _of_fsspec(root: str, scheme: str, options: dict[str, Any]) -> tuple[Any, str]:
    import pyarrow.fs

    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(
            f"{shown_uri(root)}: pyarrow has no file system for {scheme}://, and fsspec is not installed"
        ) from None
    from kraftlog.disk.fsspec_files import Handler

    try:
        file_system, base = fsspec.core.url_to_fs(root, **options)
    except (ValueError, ImportError, TypeError) as error:
        raise ValueError(
            f"{shown_uri(root)}: neither pyarrow nor fsspec has a file system for {scheme}://: {_shown(error, root)}"
        ) from None
    return pyarrow.fs.PyFileSystem(Handler(file_system)), base


def _shown(error: Exception, root: str) -> str:
    """Return the text of an error, without the user in the root."""
    return str(error).replace(root, shown_uri(root))


@contextmanager
def naming(path: RemotePath, part: str = "", passes: tuple[()] | type[Exception] = ()) -> Iterator[None]:
    """Turn errors of a file into an OSError that names it; clients of file systems may raise anything."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"no such file or directory: {path}") from None
    except passes:
        raise
    except Exception as error:
        raise OSError(f"{path}: {part}{error}") from error
