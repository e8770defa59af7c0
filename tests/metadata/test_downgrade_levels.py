"""What is known of levels, against what Kafka says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.metadata import levels
from kraftlog.metadata.versions import record_version

SCHEMAS = Path(__file__).parent.parent / "messages" / "schemas"
VERSIONS: list[dict[str, Any]] = json.loads((SCHEMAS / "metadata_versions.json").read_text())
PRODUCTION = [version for version in VERSIONS if version["isProduction"]]
FEATURES = json.loads((SCHEMAS / "features.json").read_text())

VERSION_OF = {
    "RegisterBrokerRecord": "registerBrokerRecordVersion",
    "RegisterControllerRecord": "registerControllerRecordVersion",
    "PartitionRecord": "partitionRecordVersion",
    "PartitionChangeRecord": "partitionChangeRecordVersion",
}
IS_SUPPORTED = {
    "UserScramCredentialRecord": "isScramSupported",
    "DelegationTokenRecord": "isDelegationTokenSupported",
    "RegisterControllerRecord": "isControllerRegistrationSupported",
    "BeginTransactionRecord": "isMetadataTransactionSupported",
    "ClearElrRecord": "isElrSupported",
}


@pytest.mark.parametrize("version", PRODUCTION, ids=lambda version: version["version"])
def test_a_level(version: dict[str, Any]) -> None:
    """Its number, and the records that it has."""
    level = version["featureLevel"]
    assert levels.level_of(version["version"]) == level
    assert levels.name_of(level) == version["version"]
    assert {name: record_version(name, level) for name in VERSION_OF} == {
        name: version[key] for name, key in VERSION_OF.items()
    }
    assert {name: record_version(name, level) is not None for name in IS_SUPPORTED} == {
        name: version[key] for name, key in IS_SUPPORTED.items()
    }


def test_where_metadata_changed() -> None:
    """Kafka's didMetadataChange."""
    assert list(levels.METADATA_CHANGED) == [each["featureLevel"] for each in PRODUCTION if each["didMetadataChange"]]


def test_a_release_is_its_newest_level() -> None:
    """For each release that has levels."""
    newest = {version["shortVersion"]: version["featureLevel"] for version in PRODUCTION}
    assert {release: levels.level_of(release) for release in newest} == newest


def test_features() -> None:
    """Each level of each feature but 0, which needs nothing."""
    expected = {
        (feature, level["level"]): (
            level["bootstrap_metadata_version"],
            level.get("dependencies", {}).get(METADATA_VERSION, levels.OLDEST_LEVEL),
        )
        for feature, known in FEATURES.items()
        for level in known["levels"]
        if level["level"]
    }
    found = {key: (levels.name_of(needs.bootstrap), needs.depends_on) for key, needs in levels.FEATURE_LEVELS.items()}
    assert found == expected


def test_names_that_are_not_known() -> None:
    """Say so."""
    for name in ("4.9", "banana", ""):
        with pytest.raises(ValueError, match="is not known"):
            levels.level_of(name)
