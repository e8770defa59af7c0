"""The settings of S3 that a Spark session has for Hadoop are those of kraftlog's reads and of its staging."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import read_ranges, register
from kraftlog.spark.s3a import S3aSettings
from object_store import BUCKET, ObjectStore, object_store

KEYS = {
    "fs.s3a.access.key": "key",
    "fs.s3a.secret.key": "secret",
    "fs.s3a.session.token": "token",
    "fs.s3a.endpoint": "minio:9000",
    "fs.s3a.endpoint.region": "eu-west-1",
    "fs.s3a.connection.ssl.enabled": "false",
    "fs.s3a.path.style.access": "true",
}
OPTIONS = {
    "access_key": "key",
    "secret_key": "secret",
    "session_token": "token",
    "endpoint_override": "minio:9000",
    "region": "eu-west-1",
    "scheme": "http",
}


def settings(values: dict[str, str]) -> S3aSettings:
    return S3aSettings.of(SimpleNamespace(conf=SimpleNamespace(getAll={"spark.app.name": "a", **values})))


def added(values: dict[str, str], path: str = "s3a://b/logs", **options: str) -> dict[str, Any]:
    return json.loads(settings(values).added_to({"path": path, **options}).get("storageOptions", "{}"))


def test_each_setting():
    assert added({f"spark.hadoop.{name}": value for name, value in KEYS.items()}) == OPTIONS
    assert added(KEYS) == OPTIONS  # as spark.conf.set has them
    assert added({f"spark.hadoop.{name}": "old" for name in KEYS} | KEYS) == OPTIONS
    assert added({"fs.s3a.endpoint": "http://h:1", "fs.s3a.path.style.access": "false"}) == {
        "endpoint_override": "http://h:1",
        "force_virtual_addressing": True,
    }
    provider = {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}
    assert added(KEYS | provider | {"fs.s3a.endpoint": ""}) == {
        "anonymous": True,
        "region": "eu-west-1",
        "scheme": "http",
    }
    assert added({}) == {}


def test_settings_of_a_bucket_have_precedence():
    of_bucket = {"fs.s3a.bucket.b.access.key": "own", "fs.s3a.bucket.b.c.access.key": "other"}
    assert added(KEYS | of_bucket) == OPTIONS | {"access_key": "own"}
    assert added(KEYS | of_bucket, path="s3://b.c/logs") == OPTIONS | {"access_key": "other"}
    assert added(KEYS | of_bucket, path="s3://d") == OPTIONS


@pytest.mark.parametrize("name", ["paths", "remoteTier", "stagingLocation", "STAGINGLOCATION"])
def test_all_paths_of_a_job(name: str):
    found = settings(KEYS).added_to({"path": "/local", name: "s3://b/x"})
    assert json.loads(found["storageOptions"]) == OPTIONS
    assert settings(KEYS).added_to({"path": "/local"}) == {"path": "/local"}
    assert settings(KEYS).added_to({"path": "gs://b/x"}) == {"path": "gs://b/x"}


def test_several_buckets():
    paths = '["s3://a/logs", "s3://b/logs"]'
    assert json.loads(settings(KEYS).added_to({"paths": paths})["storageOptions"]) == OPTIONS
    with pytest.raises(ValueError, match=r"different settings fs\.s3a for the buckets a, b") as caught:
        settings(KEYS | {"fs.s3a.bucket.b.secret.key": "hunter2"}).added_to({"paths": paths})
    assert "hunter2" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_credentials_are_not_mixed():
    """Of two sources, one has all of them: a token does not fit the key of another."""
    rest = {name: value for name, value in OPTIONS.items() if name not in ("access_key", "secret_key", "session_token")}
    own = {"access_key": "mine", "secret_key": "too"}
    assert added(KEYS, storageOptions=json.dumps(own)) == rest | own
    assert added(KEYS, path="s3://mine:too@b/logs") == rest  # the URI has them
    assert added(KEYS, path="s3://b/logs?role_arn=r") == rest
    assert added(KEYS, storageOptions='{"region": "us-east-1"}') == OPTIONS | {"region": "us-east-1"}
    for text in ("x", "[]"):  # refused where it is parsed
        assert settings(KEYS).added_to({"path": "s3://b", "storageOptions": text})["storageOptions"] == text


def test_nothing_shows_them():
    assert "secret" not in repr(settings(KEYS))


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


def test_reads_and_staging_of_a_session(
    spark: Any, store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    uri = store.put(GOLDEN / "codecs" / "log", "session").replace("s3://", "s3a://")
    own = {
        "fs.s3a.endpoint": f"127.0.0.1:{store.server.server_port}",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "hunter1",
        f"fs.s3a.bucket.{BUCKET}.secret.key": "hunter2",
        f"fs.s3a.bucket.{BUCKET}.endpoint.region": "us-east-1",
    }
    for name, value in own.items():
        spark.conf.set(f"spark.hadoop.{name}", value)
    register(spark)
    try:
        with caplog.at_level(logging.DEBUG, logger="kraftlog"):
            frame = spark.read.format("kraftlog").option("subscribe", "codec-none").load(uri)
            expected = kraftlog.open(GOLDEN / "codecs" / "log", topics=["codec-none"]).records(["offset"])
            rows = expected.to_table().num_rows
            assert frame.count() == rows
            frame.explain(True)
            assert read_ranges(spark, uri, subscribe="codec-none", columns="offset").count() == rows
            writer = frame.select("value").write.format("kraftlog").option("topic", "t").mode("append")
            writer.option("stagingLocation", f"s3a://{BUCKET}/staging").save(str(tmp_path))
        assert kraftlog.open(tmp_path, topics=["t"]).records(["value"]).to_table().num_rows == rows
        with pytest.raises(Exception, match="no topic other") as caught:
            spark.read.format("kraftlog").option("subscribe", "other").load(uri).count()
    finally:
        for name in own:
            spark.conf.unset(f"spark.hadoop.{name}")
        register(spark)
    shown = capfd.readouterr()
    for text in (str(caught.value), caplog.text, shown.out, shown.err):
        assert "hunter" not in text
