"""``image/configs``, ``image/clientQuotas`` and ``image/features``: a file for each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.metadata.kafka_names import CONFIG_RESOURCE_TYPES
from kraftlog.metadata.secrets import REDACTED, is_password
from kraftlog.metadata.tree.nodes import File, Node, directory_of, text_file
from kraftlog.metadata.tree.text import Row, double_text

DEFAULT_ENTITY = "<default>"
_QUOTA_ENTITIES = {"client-id": "clientId", "ip": "ip", "user": "user"}  # in the order of a name


def config_directories(rows: Iterable[Row], *, show_secrets: bool) -> Mapping[str, Node]:
    """Return a directory for each resource, ``TOPIC:name`` or, where the resource is the default one, ``BROKER``."""
    resources: dict[str, dict[str, Node]] = {}
    for row in rows:
        resource_type = CONFIG_RESOURCE_TYPES.get(row["resource_type"], "UNKNOWN")
        resource = f"{resource_type}:{row['resource_name']}" if row["resource_name"] else resource_type
        is_hidden = is_password(row["name"]) and not show_secrets
        resources.setdefault(resource, {})[row["name"]] = text_file(REDACTED if is_hidden else row["value"] or "")
    return {resource: directory_of(files) for resource, files in resources.items()}


def quota_directories(rows: Iterable[Row]) -> Mapping[str, Node]:
    """Return a directory for each entity that has quotas, such as ``clientId(app)_user(alice)``."""
    entities: dict[str, dict[str, Node]] = {}
    for row in rows:
        files = entities.setdefault(quota_entity_name(row["entity"]), {})
        files[row["key"]] = text_file(double_text(row["value"]))
    return {entity: directory_of(files) for entity, files in entities.items()}


def quota_entity_name(entity: Iterable[Row]) -> str:
    r"""Return the name of an entity's directory.

    Kafka's shell leaves a default entity (one without a name) out of the name, so that two of them look the same and
    none can be opened; here it is ``<default>``, and an entity that is really called that is ``\<default>``.
    """
    names = {part["entity_type"]: part["entity_name"] for part in entity}
    named = [(title, names.pop(kind)) for kind, title in _QUOTA_ENTITIES.items() if kind in names]
    return "_".join(f"{title}({_entity_text(name)})" for title, name in [*named, *sorted(names.items())])


def _entity_text(name: str | None) -> str:
    if name is None:
        return DEFAULT_ENTITY
    escaped = name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"\\{escaped}" if name == DEFAULT_ENTITY else escaped


def feature_files(levels: Mapping[str, int], metadata_versions: Mapping[int, str]) -> Mapping[str, File]:
    """Return the files of ``image/features``: the metadata version and the other finalized features."""
    others = {f"finalized_{name}": text_file(str(level)) for name, level in levels.items() if name != METADATA_VERSION}
    version = "Optional.empty"
    if METADATA_VERSION in levels:
        level = levels[METADATA_VERSION]
        version = f"Optional[{metadata_versions.get(level, str(level))}]"
    return {"metadataVersion": text_file(version)} | others
