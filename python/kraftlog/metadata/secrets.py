"""What is hidden of metadata records unless it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"
SECRETS = {"UserScramCredentialRecord": ("salt", "stored_key", "server_key")}

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
    """Return the columns of a record that are to be hidden."""
    if name == "ConfigRecord" and is_password(row["name"]):
        return ("value",)
    return SECRETS.get(name, ())
