"""Names of declarations, where Kafka's names have characters that are not allowed in them."""

from __future__ import annotations

import re
from hashlib import sha256

_KUBERNETES = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST = 253


def kubernetes_name(name: str) -> str:
    """Return a name for a resource of Kubernetes (RFC 1123): the name itself, or one with a hash of it.

    Examples
    --------
    >>> kubernetes_name("orders")
    'orders'
    >>> kubernetes_name("Orders_v2")
    'orders-v2-65a45c47'
    """
    if is_kubernetes_name(name):
        return name
    allowed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: _LONGEST - 9].rstrip("-")
    return f"{allowed}-{_hash(name)}" if allowed else f"x-{_hash(name)}"


def is_kubernetes_name(name: str) -> bool:
    """Whether a name is one of Kubernetes as it is."""
    return len(name) <= _LONGEST and _KUBERNETES.fullmatch(name) is not None


def terraform_label(name: str) -> str:
    """Return a label of Terraform: letters, digits, ``_`` and ``-``, with a hash if the name has others.

    Examples
    --------
    >>> terraform_label("orders")
    'orders'
    >>> terraform_label("7.days")
    '_7_days-117ea0fe'
    """
    label = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    label = label if re.match(r"[A-Za-z_]", label) else f"_{label}"
    return label if label == name else f"{label}-{_hash(name)}"


def _hash(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:8]
