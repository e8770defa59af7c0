"""The users that clients log in as by SASL."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from kraftlog.disk.disk import disk
from kraftlog.errors import KraftlogError

PLAIN = "PLAIN"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hashes of the SCRAM mechanisms, as ``hashlib`` names them."""
MECHANISMS = (PLAIN, *HASHES)
_ITERATIONS = 4096  # the least that Kafka accepts
_SALT_BYTES = 16


class AuthenticationFailedError(KraftlogError, kafka_error="SASL_AUTHENTICATION_FAILED"):
    """A client that is not the user it says it is."""


class ScramCredential(NamedTuple):
    """What SCRAM compares, instead of a password.

    Attributes
    ----------
    salt : bytes
    iterations : int
    stored_key, server_key : bytes
        By the first, the client proves that it knows the password, and by the second the server.
    """

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, hash_name: str, password: str, salt: bytes) -> Self:
        """Return the credential of a password, which Kafka's clients do not normalize."""
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, _ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        stored_key = hashlib.new(hash_name, client_key).digest()
        return cls(salt, _ITERATIONS, stored_key, hmac.digest(salted, b"Server Key", hash_name))


class Users:
    """Names and passwords, and how they are checked.

    Parameters
    ----------
    passwords : mapping of str to str
    mechanisms : iterable of {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, optional
        How clients may log in (``sasl.enabled.mechanisms``); by default all three.

    Attributes
    ----------
    mechanisms : tuple of str

    Raises
    ------
    ValueError
        When there is no user, a name or password is empty, or has a NUL or half of a surrogate pair, or there is no
        mechanism, or an unknown one.

    Examples
    --------
    >>> import kraftlog
    >>> kraftlog.Users({"alice": "a password"}).has("alice", "a password")
    True
    """

    def __init__(self, passwords: Mapping[str, str], mechanisms: Iterable[str] = MECHANISMS) -> None:
        if not passwords:
            raise ValueError("expected one user or more, found none")
        for name, password in passwords.items():
            if not name or not password or re.search("[\0\ud800-\udfff]", name + password):
                raise ValueError(f"user {name!r}: expected a name and a password, both without NUL and in UTF-8")
        self.mechanisms = tuple(mechanisms)
        if not self.mechanisms or not set(self.mechanisms) <= set(MECHANISMS):
            raise ValueError(f"mechanisms: expected some of {', '.join(MECHANISMS)}, found {list(self.mechanisms)}")
        self._passwords = dict(passwords)
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    @classmethod
    def read(cls, path: Path, mechanisms: Iterable[str] = MECHANISMS) -> Users:
        """Read a JSON object of names and passwords.

        As ssh treats a private key, a file of this user's own is refused if others have permissions for it. One of
        another user, such as a secret that a container mounts, cannot be changed here, and is read.

        Raises
        ------
        ValueError
            When the file is something else, or names a user twice, or others can read it.
        OSError
            When it cannot be read.
        """
        if disk().permissions_of_others(path):
            raise ValueError(
                f"{path}: expected a file that only its owner can read, found permissions for others: "
                f"chmod 600 {shlex.quote(str(path))}"
            )
        try:
            found = json.loads(disk().read_bytes(path), object_pairs_hook=tuple)
        except ValueError as error:
            raise ValueError(f"{path}: expected a JSON object of users and their passwords, found {error}") from None
        if not isinstance(found, tuple) or not all(isinstance(password, str) for _, password in found):
            raise ValueError(f"{path}: expected a JSON object of users and their passwords, found something else")
        if len(dict(found)) < len(found):
            raise ValueError(f"{path}: expected each user once")
        try:
            return cls(dict(found), mechanisms)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def has(self, name: str, password: str) -> bool:
        """Whether it is the password of a user; the time that it takes does not depend on how much of it is right."""
        known = self._passwords.get(name)
        return hmac.compare_digest((known or "").encode(), password.encode()) and known is not None

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """Return what a mechanism of SCRAM compares, the same until the end; None for an unknown user."""
        password = self._passwords.get(name)
        if password is None:
            return None
        key = mechanism, name
        if key not in self._credentials:
            self._credentials[key] = ScramCredential.of(HASHES[mechanism], password, secrets.token_bytes(_SALT_BYTES))
        return self._credentials[key]
