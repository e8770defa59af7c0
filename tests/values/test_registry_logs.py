"""``_schemas`` as real registries wrote it: subjects, versions and ids are what these registries answer."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.values.schema_store import Reference, Schema, SchemaStore

REGISTRIES = ["karapace"]
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
    stream = kraftlog.open(GOLDEN / "schema_registry" / registry / "log").scan("schemas")
    found: list[dict[str, Any]] = stream.to_table().to_pylist()
    assert not stream.faults
    return found


@pytest.fixture
def store(rows: list[dict[str, Any]]) -> SchemaStore:
    names = ("subject", "version", "id", "type", "schema")
    return SchemaStore(
        [
            Schema(
                *(row[name] for name in names),
                tuple(Reference(**one) for one in row["references"]),
                deleted=row["deleted"],
            )
            for row in rows
        ]
    )


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
    assert sum(row["deleted"] for row in rows) == 4


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
        has_versions = answers[f"/schemas/ids/{number}/versions?deleted=true"][1]
        found = store.by_id(number)
        assert (found is not None) == (status == 200 and bool(has_versions)), number
        if found is not None:
            row = {"schema": answer["schema"], "type": answer.get("schemaType", "AVRO")}
            assert text({"schema": found.schema, "type": found.type}) == text(row)


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
