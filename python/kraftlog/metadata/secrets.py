"""Fields of metadata records that are hidden unless they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.record_types import CONFIGS, IMAGE_TYPES

REDACTED = "[redacted]"

# Kafka's settings of type PASSWORD; a listener's have its name before them
PASSWORDS = (
    "delegation.token.secret.key",
    "sasl.jaas.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)

TYPES_WITH_SECRETS = frozenset({CONFIGS.name, *(one.name for one in IMAGE_TYPES.values() if one.secrets)})


def is_password(name: str) -> bool:
    """Whether a config holds a password or a key."""
    return name.endswith(PASSWORDS)


def secret_columns(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a record that are hidden."""
    if name == CONFIGS.name:
        return ("value",) if is_password(row["name"]) else ()
    return IMAGE_TYPES[name].secrets if name in IMAGE_TYPES else ()


def rows_with_secrets(name: str, fields: pa.RecordBatch) -> Iterable[int]:
    """Return which records of one of ``TYPES_WITH_SECRETS`` have something to hide.

    Their columns are those of a definition that a user may have given: where it does not tell passwords from other
    configs, all are hidden.
    """
    if name == CONFIGS.name and "name" in fields.schema.names:
        configs = fields.column("name").to_pylist()
        return [row for row, config in enumerate(configs) if not isinstance(config, str) or is_password(config)]
    return range(fields.num_rows)


def has_secrets(name: str, text: str) -> bool:
    """Whether the JSON of a record of one of ``TYPES_WITH_SECRETS`` has something to hide."""
    return name != CONFIGS.name or is_password(json.loads(text)["name"])


def json_without_secrets(name: str, text: str) -> str:
    """Return the JSON of a record that has secrets, with ``REDACTED`` in their place.

    Examples
    --------
    >>> json_without_secrets("ConfigRecord", '{"resourceType":2,"name":"ssl.key.password","value":"x"}')
    '{"resourceType":2,"name":"ssl.key.password","value":"[redacted]"}'
    """
    fields = json.loads(text)
    hidden = ("value",) if name == CONFIGS.name else IMAGE_TYPES[name].secrets
    for field in BUILT_IN.messages[name].fields:
        if field.column in hidden and field.name in fields:
            fields[field.name] = REDACTED
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def without_secrets(name: str, fields: pa.RecordBatch) -> pa.RecordBatch:
    """Return records of a type with their secrets hidden: passwords are ``REDACTED``, secret fields null."""
    columns = dict(zip(fields.schema.names, fields.columns, strict=True))
    for secret in IMAGE_TYPES[name].secrets:
        if secret in columns:
            columns[secret] = pa.nulls(fields.num_rows, columns[secret].type)
    if name == CONFIGS.name and "value" in columns:
        is_secret = np.zeros(fields.num_rows, bool)
        is_secret[list(rows_with_secrets(name, fields))] = True
        value_type = columns["value"].type
        shown = pa.scalar(REDACTED if value_type == pa.string() else None, value_type)
        columns["value"] = pc.if_else(pa.array(is_secret), shown, columns["value"])
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=fields.schema)
