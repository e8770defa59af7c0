"""The users that clients log in as by SASL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hmac import compare_digest
from pathlib import Path
from typing import Any

from kraftlog.disk.disk import disk
from kraftlog.stream import optional_package

PLAIN = "PLAIN"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)
_ITERATIONS = 4096  # the least that Kafka accepts


class Users:
    """Names and passwords, and how they are checked.

    Parameters
    ----------
    passwords : mapping of str to str

    Raises
    ------
    ValueError
        When there is none, or a name or password is empty or has a NUL.
    ImportError
        When scramp is not installed, which the SCRAM mechanisms need.

    Examples
    --------
    >>> import kraftlog
    >>> kraftlog.Users({"alice": "a password"}).has("alice", "a password")
    True
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        if not passwords:
            raise ValueError("expected one user or more, found none")
        for name, password in passwords.items():
            if not name or not password or "\0" in name + password:
                raise ValueError(f"user {name!r}: expected a name and a password, both without NUL")
        self._passwords = dict(passwords)
        scramp = optional_package("scramp", "SCRAM", "'kraftlog[sasl]'")
        self._mechanisms = {name: scramp.ScramMechanism(name) for name in SCRAM_MECHANISMS}
        self._credentials: dict[tuple[str, str], Any] = {}

    @classmethod
    def read(cls, path: Path) -> Users:
        """Read a JSON object of names and passwords.

        Raises
        ------
        ValueError
            When the file is something else, or names a user twice.
        OSError
            When it cannot be read.
        """
        try:
            found = json.loads(disk().read_bytes(path), object_pairs_hook=tuple)
        except ValueError as error:
            raise ValueError(f"{path}: expected a JSON object of users and their passwords, found {error}") from None
        if not isinstance(found, tuple) or not all(isinstance(password, str) for _, password in found):
            raise ValueError(f"{path}: expected a JSON object of users and their passwords, found something else")
        if len(dict(found)) < len(found):
            raise ValueError(f"{path}: expected each user once")
        try:
            return cls(dict(found))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def has(self, name: str, password: str) -> bool:
        """Whether it is the password of a user; the time that it takes does not depend on how much of it is right."""
        known = self._passwords.get(name)
        return compare_digest((known or "").encode(), password.encode()) and known is not None

    def scram_server(self, mechanism: str) -> Any:
        """Return a ``scramp.ScramServer`` for one exchange."""
        return self._mechanisms[mechanism].make_server(lambda name: self._credentials_of(mechanism, name))

    def _credentials_of(self, mechanism: str, name: str) -> Any:
        """Return salt, keys and iterations; raise KeyError for an unknown user."""
        key = mechanism, name
        if key not in self._credentials:
            made = self._mechanisms[mechanism].make_auth_info(self._passwords[name], iteration_count=_ITERATIONS)
            self._credentials[key] = made
        return self._credentials[key]
