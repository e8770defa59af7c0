"""Fields of metadata records that are hidden unless they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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


def is_password(name: str) -> bool:
    """Whether a config holds a password or a key."""
    return name.endswith(PASSWORDS)


def secret_columns(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a record that are hidden."""
    if name == CONFIGS.name:
        return ("value",) if is_password(row["name"]) else ()
    return IMAGE_TYPES[name].secrets if name in IMAGE_TYPES else ()


def without_secrets(name: str, fields: pa.RecordBatch) -> pa.RecordBatch:
    """Return records of a type with their secrets hidden: passwords are ``REDACTED``, secret fields null."""
    columns = dict(zip(fields.schema.names, fields.columns, strict=True))
    for secret in IMAGE_TYPES[name].secrets:
        columns[secret] = pa.nulls(fields.num_rows, columns[secret].type)
    if name == CONFIGS.name:
        is_secret = pa.array([is_password(config) for config in columns["name"].to_pylist()], pa.bool_())
        columns["value"] = pc.if_else(is_secret, REDACTED, columns["value"])
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=fields.schema)
