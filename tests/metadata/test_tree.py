"""The tree of an image has the paths and the text that Kafka's metadata shell shows of the same image.

Kafka's answers were printed by the shell of Kafka 4.3; tests/interop asks it again.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from image_tables import OFFSETS, image_tables, known_image
from kraftlog.metadata.tree.nodes import Directory, File, Node, kafka_order
from kraftlog.metadata.tree.text import double_text, provenance_text
from kraftlog.metadata.tree.tree import image_tree
from odd_metadata import EPOCH, TIMESTAMP, records

ANSWERS = json.loads(gzip.decompress(Path(__file__).with_name("kafka_metadata_shell.json.gz").read_bytes()))
LOCAL = {"commitId": "unknown", "version": "4.3.0"}


def tree_of(case: str, *, show_secrets: bool = True) -> Directory:
    """Return the tree of an image of the golden log, or that of odd records."""
    if case != "odd":
        known = known_image(int(case))
        at = known.offset, known.epoch, known.timestamp
        return image_tree(known.tables(), *at, local=LOCAL, show_secrets=show_secrets)
    odd = records()
    return image_tree(image_tables(odd), len(odd), EPOCH, TIMESTAMP, local=LOCAL, show_secrets=show_secrets)


def child(node: Node | None, path: str) -> Node | None:
    for name in path.split("/"):
        assert isinstance(node, Directory)
        node = node.child(name)
    return node


def text(tree: Directory, path: str) -> str:
    file = child(tree, path)
    assert isinstance(file, File)
    return file.read()


def lines(node: Node, indent: str = "") -> Iterator[str]:
    if isinstance(node, File):
        yield indent + node.read()
        return
    for name in node.names:
        below = node.child(name)
        assert below is not None
        if "<default>" in name:
            yield f"{indent}:"
        else:
            yield f"{indent}{name}:"
            yield from lines(below, f"{indent}  ")


def paths(node: Node, path: str) -> Iterator[str]:
    yield path
    if isinstance(node, Directory):
        for name in node.names:
            below = node.child(name)
            assert below is not None
            yield from paths(below, f"{path}/{name}")


@pytest.mark.parametrize("case", [*map(str, OFFSETS), "odd"])
def test_contents_are_those_of_kafka(case: str):
    image = child(tree_of(case), "image")
    assert image is not None
    assert list(lines(image)) == ANSWERS[case]["tree"]


@pytest.mark.parametrize("case", [*map(str, OFFSETS), "odd"])
def test_paths_are_those_of_kafka(case: str):
    """All but those of clientQuotas, where Kafka's shell fails."""
    tree = tree_of(case)
    assert tree.names == ["image", "local"]
    image = child(tree, "image")
    assert isinstance(image, Directory)
    ours = [path for path in paths(image, "/image") if not path.startswith("/image/clientQuotas")]
    assert ours[1:] == ANSWERS[case]["find"]


def test_default_entities_of_quotas():
    """Kafka's shell leaves them out of the name; here they have one, and no other entity has the same."""
    entities = [
        [("client-id", None)],
        [("user", None), ("client-id", "app")],
        [("user", "alice"), ("client-id", None)],
        [("user", "alice")],
        [("user", "<default>")],
    ]
    quotas = [[{"entityType": kind, "entityName": name} for kind, name in entity] for entity in entities]
    made = [
        {"type_id": 14, "data": {"entity": entity, "key": "producer_byte_rate", "value": float(number)}}
        for number, entity in enumerate(quotas)
    ]
    tree = image_tree(image_tables(made), 0, 0, 0, local=LOCAL)
    names = [
        "clientId(<default>)",
        "clientId(app)_user(<default>)",
        "clientId(<default>)_user(alice)",
        "user(alice)",
        r"user(\<default>)",
    ]
    contents = [text(tree, f"image/clientQuotas/{name}/producer_byte_rate") for name in names]
    assert contents == ["0.0", "1.0", "2.0", "3.0", "4.0"]


def test_secrets_are_hidden():
    """Credentials, tokens and passwords, unless they are asked for."""
    hidden, shown = tree_of("odd", show_secrets=False), tree_of("odd")
    password = "image/configs/BROKER:1/listener.name.external.ssl.keystore.password"
    assert (text(hidden, password), text(shown, password)) == ("[redacted]", "a secret")
    assert text(hidden, "image/scram/SCRAM-SHA-256/alice") == (
        "ScramCredentialData(salt=[redacted], storedKey=[redacted], serverKey=[redacted], iterations=[redacted])"
    )
    assert "salt=00ff," in text(shown, "image/scram/SCRAM-SHA-256/alice")
    token = text(hidden, "image/delegationToken/aToken")
    assert token.count("[redacted]") == 7
    assert "aToken" not in token
    differing = [
        (ours, theirs)
        for ours, theirs in zip(lines(hidden), lines(shown), strict=True)
        if ours != theirs and "[redacted]" not in ours
    ]
    assert differing == []


def test_an_empty_image():
    tree = image_tree({}, -1, -1, -1, local=LOCAL)
    assert list(lines(tree)) == [
        *("image:", "  acls:", "    byId:", "  clientQuotas:", "  cluster:", "    brokers:", "    controllers:"),
        *("  configs:", "  delegationToken:", "  features:", "    metadataVersion:", "      Optional.empty"),
        *("  producerIds:", "    nextProducerId:", "      -1", "  provenance:"),
        *("    offset -1, epoch -1, time 1969-12-31T23:59:59.999Z[UTC]", "  scram:", "    SCRAM-SHA-256:"),
        *("    SCRAM-SHA-512:", "  topics:", "    byId:", "    byName:", "local:", "  commitId:", "    unknown"),
        *("  version:", "    4.3.0"),
    ]


def test_numbers_that_kafka_does_not_know():
    """A level or a code of a later release is shown as a number."""
    acl = {"id": "A" * 22, "resourceType": 9, "patternType": 9, "operation": 99, "permissionType": -1}
    acl |= {"resourceName": "r", "principal": "User:p", "host": "*"}
    made = [
        {"type_id": 12, "data": {"name": "metadata.version", "featureLevel": 999}},
        {"type_id": 18, "data": acl},
        {"type_id": 4, "data": {"resourceType": 64, "resourceName": "x", "name": "n", "value": "v"}},
    ]
    tree = image_tree(image_tables(made), 0, 0, 0, local=LOCAL)
    assert text(tree, "image/features/metadataVersion") == "Optional[999]"
    assert "resourceType=9, resourceName=r, patternType=9" in text(tree, f"image/acls/byId/{'A' * 22}")
    assert text(tree, "image/configs/UNKNOWN:x/n") == "v"


def test_nothing_is_read_before_it_is_looked_into():
    """Each directory reads the tables that it shows, and no other one."""

    class Tables(dict[str, pa.Table]):
        def __init__(self) -> None:
            self.read: list[str] = []
            super().__init__()

        def get(self, name: str, default: object = None) -> None:  # type: ignore[override]
            self.read.append(name)

    tables = Tables()
    tree = image_tree(tables, 0, 0, 0, local=LOCAL)
    tables.read.clear()
    for directory, record_type in [("acls/byId", "AccessControlEntryRecord"), ("configs", "ConfigRecord")]:
        node = child(tree, f"image/{directory}")
        assert tables.read == []
        assert isinstance(node, Directory)
        assert node.names == []
        assert tables.read == [record_type]
        tables.read.clear()


def test_names_are_in_the_order_of_java():
    """By UTF-16 units: a clef, which is two of them, stands before a ligature."""
    assert sorted(["ﬁ", "𝄞", "z", "Z", "10", "2"], key=kafka_order) == ["10", "2", "Z", "z", "𝄞", "ﬁ"]


def test_numbers_and_times_of_java():
    """What Java prints for doubles that no quota has, and for times without milliseconds."""
    doubles = [float("nan"), float("inf"), float("-inf"), -0.0]
    assert list(map(double_text, doubles)) == ["NaN", "Infinity", "-Infinity", "-0.0"]
    assert provenance_text(1, 2, 1_000_000_000_000) == "offset 1, epoch 2, time 2001-09-09T01:46:40Z[UTC]"
    assert provenance_text(1, 2, 1_000_000_000_120).endswith("time 2001-09-09T01:46:40.12Z[UTC]")
    assert provenance_text(1, 2, 2**62).endswith(f"time {2**62} ms")
