"""``_schemas`` as real registries wrote it: subjects, versions and ids are what these registries answer."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.errors import Fault
from kraftlog.layout.discover import discover
from kraftlog.values.find_schemas import find_schemas
from kraftlog.values.schema_store import Schema, SchemaStore

REGISTRIES = ["confluent", "karapace"]
NAMES = ["subject", "version", "id", "type", "schema", "references", "deleted", "guid"]
LAST_ID = 39  # the registries were asked for ids up to this one

Answers = dict[str, tuple[int, Any]]


@pytest.fixture(scope="module", params=REGISTRIES)
def registry(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def answers(registry: str) -> Answers:
    found = lines(GOLDEN / "schema_registry" / registry / "answers.jsonl")
    return {line["path"]: (line["status"], line["answer"]) for line in found}


@pytest.fixture(scope="module")
def rows(registry: str) -> list[dict[str, Any]]:
    stream = kraftlog.open(GOLDEN / "schema_registry" / registry / "log").scan("schemas", NAMES)
    found: list[dict[str, Any]] = stream.to_table().to_pylist()
    assert not stream.faults
    return found


@pytest.fixture
def store(registry: str) -> SchemaStore:
    faults: list[Fault] = []
    found = find_schemas(discover(GOLDEN / "schema_registry" / registry / "log"), None, faults)
    assert not faults
    return found


def text(row: dict[str, Any]) -> str:
    """Return a schema in one form; a registry may write JSON in another one than it answers."""
    found: str = row["schema"]
    return found if row["type"] == "PROTOBUF" else json.dumps(json.loads(found), sort_keys=True)


def as_row(answer: dict[str, Any], *, deleted: bool) -> dict[str, Any]:
    row = {name: answer[name] for name in ("id", "subject", "version")}
    row |= {
        "type": answer.get("schemaType") or "AVRO",
        "references": answer.get("references") or [],
        "deleted": deleted,
    }
    return row | {"schema": text(row | {"schema": answer["schema"]})}


def test_versions_of_each_subject(rows: list[dict[str, Any]], answers: Answers):
    """All that are there, and of these all that are not deleted, each with its id, type, text and references."""
    expected = []
    for subject in answers["/subjects?deleted=true"][1]:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        living = answers[path][1] if answers[path][0] == 200 else []
        for version in answers[f"{path}?deleted=true"][1]:
            status, answer = answers[f"{path}/{version}?deleted=true"]
            assert status == 200
            assert (answers[f"{path}/{version}"][0] == 200) == (version in living)
            expected.append(as_row(answer, deleted=version not in living))
    found = [{name: row[name] for name in expected[0]} | {"schema": text(row)} for row in rows]
    assert found == sorted(expected, key=lambda row: (row["subject"], row["version"]))
    assert sum(row["deleted"] for row in rows) in (3, 4)  # Confluent's removes one that is registered again


def test_subjects(rows: list[dict[str, Any]], answers: Answers):
    assert {row["subject"] for row in rows} == set(answers["/subjects?deleted=true"][1])
    assert {row["subject"] for row in rows if not row["deleted"]} == set(answers["/subjects"][1])


def test_the_newest_version(store: SchemaStore, answers: Answers):
    for subject in answers["/subjects"][1]:
        status, answer = answers[f"/subjects/{quote(subject, safe='')}/versions/latest"]
        newest = store.newest(subject)
        assert newest is not None
        assert (status, newest.version, newest.id) == (200, answer["version"], answer["id"])


def test_ids(store: SchemaStore, answers: Answers):
    """An id that some version has is found, deleted softly or not; Karapace finds those that no version has as well."""
    for number in range(1, LAST_ID + 1):
        status, answer = answers[f"/schemas/ids/{number}"]
        versions = answers[f"/schemas/ids/{number}/versions?deleted=true"][1]
        check(store.by_id(number), answer if status == 200 and versions else None, number)


def check(found: Schema | None, answer: dict[str, Any] | None, which: object) -> None:
    assert (found is not None) == (answer is not None), which
    if found is not None and answer is not None:
        row = {"schema": answer["schema"], "type": answer.get("schemaType", "AVRO")}
        assert text({"schema": found.schema, "type": found.type}) == text(row), which


def test_ids_of_contexts(store: SchemaStore, registry: str, answers: Answers):
    """The subject says of which context an id is."""
    asked = {}
    for path, (status, answer) in answers.items():
        if (named := re.fullmatch(r"/schemas/ids/(\d+)\?subject=(.+)", path)) and status == 200:
            asked[path] = answer["schema"]
            check(store.by_id(int(named[1]), named[2]), answer, path)
    assert len(asked) == (49 if registry == "confluent" else 0)
    if asked:
        assert asked["/schemas/ids/1?subject=context-value"] == asked["/schemas/ids/1?subject=:.test:"]
        assert asked["/schemas/ids/2?subject=context-value"] != asked["/schemas/ids/2?subject=:.test:"]
        assert len({asked[f"/schemas/ids/1?subject={one}"] for one in ("orders-value", ":.test:")}) == 2


def test_guids(store: SchemaStore, rows: list[dict[str, Any]], registry: str, answers: Answers):
    """They cover metadata, too."""
    found = 0
    for path, (_, answer) in answers.items():
        if path.startswith("/schemas/guids/"):
            schema = store.by_guid(UUID(path.rpartition("/")[2]).bytes)
            assert schema is not None, path
            assert schema.schema == answer["schema"]
            found += 1
    guids = {(row["subject"], row["version"]): row["guid"] for row in rows}
    for path, (status, answer) in answers.items():
        if path.startswith("/subjects/") and status == 200 and isinstance(answer, dict) and "guid" in answer:
            assert guids[answer["subject"], answer["version"]] == answer["guid"]
            found += 1
    assert (found > 60) == (registry == "confluent")


def test_references(store: SchemaStore):
    (person, invoice) = (store.newest(subject) for subject in ("person-value", "invoice-value"))
    assert person is not None
    assert invoice is not None
    assert [(name, one.subject, one.version) for name, one in store.references_of(person)] == [
        ("shop.Address", "address-value", 1)
    ]
    assert [(name, one.subject, one.version) for name, one in store.references_of(invoice)] == [
        ("common.proto", "common.proto", 1)
    ]
    address = store.by_id(5)
    assert address is not None
    assert store.references_of(person)[0][1].schema == address.schema


def test_references_within_a_context(store: SchemaStore, registry: str):
    person = store.newest(":.test:person-value")
    assert (person is not None) == (registry == "confluent")
    if person is not None:
        ((name, used),) = store.references_of(person)
        assert (name, used.subject, used.id) == ("shop.Address", ":.test:address-value", 4)
        assert '"zip"' in used.schema


def test_a_subject_that_was_cleared(rows: list[dict[str, Any]], registry: str):
    found = [(row["version"], row["id"]) for row in rows if row["subject"] == "imported-value"]
    assert found == ([(5, 100)] if registry == "confluent" else [])
