"""Hadoop's settings of S3 in a Spark session (``fs.s3a.*``) as options of the file systems of pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kraftlog.disk.remote_path import RemotePath
from kraftlog.spark.options import texts_of_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIXES = ("spark.hadoop.fs.s3a.", "fs.s3a.")  # of the session's start, and as set later, which has precedence
_NAMES = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_CREDENTIALS = {"access_key", "secret_key", "session_token", "anonymous", "role_arn"}
_PATHS = ("path", "paths", "remotetier", "staginglocation")


@dataclass(frozen=True)
class S3aSettings:
    """The settings of a session.

    Attributes
    ----------
    values : mapping of str to str
        By the part of the name after ``fs.s3a.``.
    """

    values: Mapping[str, str] = field(repr=False)  # has keys

    @classmethod
    def of(cls, spark: SparkSession) -> S3aSettings:
        """Return the settings that a session, classic or of Spark Connect, has now."""
        settings = dict(spark.conf.getAll)
        return cls(
            {
                name.removeprefix(prefix): value
                for prefix in _PREFIXES
                for name, value in settings.items()
                if name.startswith(prefix) and value
            }
        )

    def added_to(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a reader or a writer, with ``storageOptions`` for their S3 paths.

        What ``storageOptions`` or a URI says has precedence: the session's credentials are not mixed with theirs.

        Raises
        ------
        ValueError
            When the paths are in buckets with different settings.
        """
        texts = {name.lower(): name for name in options}
        uris = [
            RemotePath.parse(path)
            for name in _PATHS
            if name in texts
            for path in texts_of_list(options[texts[name]], name)
            if path.lower().startswith(("s3://", "s3a://", "s3n://"))
        ]
        each = {uri.root.removeprefix("s3://"): self._storage_options(uri) for uri in uris}
        if not any(each.values()):
            return dict(options)
        if len({json.dumps(of, sort_keys=True) for of in each.values()}) > 1:
            raise ValueError(
                f"the session has different settings fs.s3a for the buckets {', '.join(sorted(each))}; read them one by"
                " one, or set option storageOptions"
            )
        name = texts.get("storageoptions", "storageOptions")
        try:
            own = json.loads(options.get(name, "{}"))
        except ValueError:
            return dict(options)  # it is refused where it is parsed
        if not isinstance(own, dict):
            return dict(options)
        said = own.keys() | {key for uri in uris for key, _ in uri.storage_options}
        left_out = said | (_CREDENTIALS if said & _CREDENTIALS else set())
        settings = {key: value for key, value in next(iter(each.values())).items() if key not in left_out}
        return {**options, name: json.dumps(settings | own)}

    def _storage_options(self, uri: RemotePath) -> dict[str, str | bool]:
        of_bucket = f"bucket.{uri.root.removeprefix('s3://')}."
        values = {name: value for name, value in self.values.items() if not name.startswith("bucket.")}
        values |= {
            name.removeprefix(of_bucket): value for name, value in self.values.items() if name.startswith(of_bucket)
        }
        options: dict[str, str | bool] = {_NAMES[name]: value for name, value in values.items() if name in _NAMES}
        if "AnonymousAWSCredentialsProvider" in values.get("aws.credentials.provider", ""):
            options = {name: value for name, value in options.items() if name not in _CREDENTIALS} | {"anonymous": True}
        without_tls = values.get("connection.ssl.enabled", "true").strip().lower() == "false"
        if "endpoint" in values:
            options["endpoint_override"] = values["endpoint"].strip()
            if values.get("path.style.access", "").strip().lower() == "false":
                options["force_virtual_addressing"] = True
        if without_tls and "://" not in values.get("endpoint", ""):
            options["scheme"] = "http"
        return options
