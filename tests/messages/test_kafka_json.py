"""Definitions from Kafka's own JSON files, of this release and of earlier ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_schemas import SCHEMAS, schemas

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Versions
from kraftlog.messages.format_of import UNNAMED_KEYS
from kraftlog.messages.kafka_json import load_folder

COMMENTED = """// Licensed // to "nobody"
/* in two
   lines */
{
  "apiKey": 2, // its number
  "type": "metadata", "name": "TopicRecord", "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    { "name": "Name", "type": "string", "versions": "0+", "mapKey": true, "about": "https://example.org // \\"x\\"" },
    { "name": "Size", "type": "uint32", "versions": "1+", "default": "0x7f", "ignorable": true },
    { "name": "Data", "type": "records", "versions": "0+", "nullableVersions": "1+" }
  ]
}
"""
# As releases before 4.0 have them, in one folder, next to a request.
EARLIER = {
    "OffsetCommitKey": """{ "name": "OffsetCommitKey", "validVersions": "0-1", "type": "data", "fields": [
        { "name": "group", "versions": "0-1", "type": "string" },
        { "name": "topic", "versions": "0+", "type": "string" },
        { "name": "partition", "versions": "0-1", "type": "int32" } ] }""",
    "OffsetCommitValue": """{ "name": "OffsetCommitValue", "validVersions": "0-3", "flexibleVersions": "none",
        "type": "data", "fields": [ { "name": "offset", "versions": "0+", "type": "int64" } ] }""",
    "GroupMetadataKey": """{ "name": "GroupMetadataKey", "validVersions": "2", "flexibleVersions": "none",
        "type": "data", "fields": [ { "name": "group", "versions": "2", "type": "string" } ] }""",
    "GroupMetadataValue": """{ "name": "GroupMetadataValue", "validVersions": "0-3", "flexibleVersions": "none",
        "type": "data", "fields": [ { "name": "generation", "versions": "0+", "type": "int32" } ] }""",
    "TransactionLogKey": """{ "name": "TransactionLogKey", "validVersions": "0", "flexibleVersions": "none",
        "type": "data", "fields": [ { "name": "TransactionalId", "versions": "0", "type": "string" } ] }""",
    "TransactionLogValue": """{ "name": "TransactionLogValue", "validVersions": "0", "flexibleVersions": "none",
        "type": "data", "fields": [ { "name": "ProducerId", "versions": "0", "type": "int64" } ] }""",
    "FetchRequest": '{ "name": "FetchRequest", "type": "request", "validVersions": "4-17", "listeners": [] }',
    "dashboard": '{ "panels": [] }',
    "list": "[1, 2]",
}


def test_kafkas_json_gives_the_built_in_definitions() -> None:
    loaded = load_folder(SCHEMAS)
    assert loaded == {name: one for name, one in BUILT_IN.messages.items() if one.format not in UNNAMED_KEYS}
    assert loaded.keys() == schemas().keys()
    catalog = BUILT_IN.with_definitions(loaded)
    assert catalog.formats == BUILT_IN.formats


def test_comments_and_what_is_of_no_matter_here(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "TopicRecord.json").write_text(COMMENTED)
    definition = load_folder(tmp_path)["TopicRecord"]
    name, size, data = definition.fields
    assert (definition.api_key, definition.versions, definition.format) == (2, Versions(0, 1), "metadata")
    assert (name.name, name.kind, name.default) == ("name", "string", "")
    assert (size.default, size.is_ignorable, size.versions) == (127, True, Versions(1, 1))
    assert (data.kind, data.nullable) == ("bytes", Versions(1, 1))
    catalog = BUILT_IN.with_definitions({"TopicRecord": definition})
    assert [name for name, _, _ in catalog.formats["metadata"].types[2].columns] == ["name", "size", "data"]


def test_keys_of_earlier_releases(tmp_path: Path) -> None:
    for name, text in EARLIER.items():
        (tmp_path / f"{name}.json").write_text(text)
    loaded = load_folder(tmp_path)
    assert {name: (one.role, one.api_key, one.format) for name, one in loaded.items()} == {
        "LegacyOffsetCommitKey": ("coordinator-key", 0, "consumer_offsets"),
        "OffsetCommitKey": ("coordinator-key", 1, "consumer_offsets"),
        "OffsetCommitValue": ("coordinator-value", 1, "consumer_offsets"),
        "GroupMetadataKey": ("coordinator-key", 2, "consumer_offsets"),
        "GroupMetadataValue": ("coordinator-value", 2, "consumer_offsets"),
        "TransactionLogKey": ("coordinator-key", 0, "transaction_state"),
        "TransactionLogValue": ("coordinator-value", 0, "transaction_state"),
    }
    for name in ("LegacyOffsetCommitKey", "OffsetCommitKey", "GroupMetadataKey", "TransactionLogKey"):
        assert loaded[name] == BUILT_IN.messages[name]
    catalog = BUILT_IN.with_definitions(loaded)
    types = catalog.formats["consumer_offsets"].types
    assert types.keys() == BUILT_IN.formats["consumer_offsets"].types.keys()
    assert {types[api_key].value for api_key in (0, 1)} == {loaded["OffsetCommitValue"]}


def test_the_folder_tells_which_log_a_new_message_is_of(tmp_path: Path) -> None:
    text = '{ "name": "%sKey", "type": "coordinator-key", "apiKey": 99, "validVersions": "0", "fields": [] }'
    expected = {"share-coordinator": "share_group_state", "transaction-coordinator": "transaction_state"}
    expected |= {"group-coordinator": "consumer_offsets", "elsewhere": "consumer_offsets"}
    for folder in expected:
        (tmp_path / folder / "src").mkdir(parents=True)
        (tmp_path / folder / "src" / "Key.json").write_text(text % folder)
    assert {name.removesuffix("Key"): one.format for name, one in load_folder(tmp_path).items()} == expected


def field(more: str) -> str:
    return f'{{ "name": "One", "type": "data", "validVersions": "0-1", "fields": [ {{ "name": "Id", {more} }} ] }}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ('{ "type": "data", "validVersions": "0" }', '"name" is a string, not None'),
        ('{ "type": "data", "name": "One", "validVersions": 0 }', 'One: "validVersions" is a string, not 0'),
        ('{ "type": "data", "name": "One", "validVersions": "1-0" }', "One: versions '1-0'"),
        ('{ "type": "data", "name": "One", "validVersions": "0", "apiKey": "1" }', '"apiKey" is a number'),
        ('{ "type": "data", "name": "One", "validVersions": "0", "fields": [1] }', '"fields" is an array of objects'),
        (field('"versions": "0+"'), 'One: Id: "type" is a string'),
        (field('"type": "int32"'), "One: Id: it has no versions"),
        (field('"type": "int32", "versions": "x"'), "One: Id: versions are written as"),
        (field('"type": "Other", "versions": "0+"'), "One: Id: Other is no type, and no struct"),
        (field('"type": "int32", "versions": "0+", "tag": 0'), "One: Id: a tag and tagged versions"),
        (field('"type": "int32", "taggedVersions": "0+"'), "One: Id: a tag and tagged versions"),
        (field('"type": "int32", "taggedVersions": "0+", "tag": -1'), "One: Id: a tag is a number"),
        (field('"type": "int32", "versions": "0+", "default": "1.5"'), "One: Id: invalid literal"),
        (field('"type": "string", "versions": "0+", "default": "null"'), "One: Id: its default is null"),
        (field('"type": "string", "versions": "0+", "flexibleVersions": "none"'), "One: Id: flexible versions"),
        (field('"type": "Inner", "versions": "0+", "fields": [ { "name": "A" } ]'), 'One: Id: A: "type" is a string'),
        (
            field('"type": "In", "versions": "0+", "fields": [ { "name": "A", "type": "In", "versions": "0+" } ]'),
            "In in",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "One.json").write_text(text)
    with pytest.raises(ValueError, match=reason) as error:
        load_folder(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'One.json'}: ")


def test_two_files_that_define_one_message(tmp_path: Path) -> None:
    (tmp_path / "A.json").write_text(field('"type": "int32", "versions": "0+"'))
    (tmp_path / "B.json").write_text(field('"type": "int32", "versions": "0+"'))
    assert load_folder(tmp_path).keys() == {"One"}
    (tmp_path / "B.json").write_text(field('"type": "int64", "versions": "0+"'))
    with pytest.raises(ValueError, match=r"B.json: .*A.json has another One"):
        load_folder(tmp_path)


def test_a_folder_without_definitions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no definitions of messages"):
        load_folder(tmp_path)


def test_a_key_of_three_versions(tmp_path: Path) -> None:
    (tmp_path / "Key.json").write_text(EARLIER["OffsetCommitKey"].replace('"0-1"', '"0-2"'))
    (tmp_path / "Value.json").write_text(EARLIER["OffsetCommitValue"])
    with pytest.raises(ValueError, match="OffsetCommitKey: a key has one version or two, not 0-2"):
        load_folder(tmp_path)
