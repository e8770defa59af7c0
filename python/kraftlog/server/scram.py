"""SCRAM (RFC 5802, RFC 7677), as Kafka's clients and brokers speak it.

They take names and passwords as they are, in UTF-8, where the RFC prepares them by SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from kraftlog.server.users import HASHES, AuthenticationFailedError, Users

_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_NONCE = r"[!-+\--~]+"  # printable ASCII without a comma
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\0]+)*"  # are ignored
_BASE64 = r"[A-Za-z0-9+/]+=*"
_FIRST = re.compile(rf"(n,(?:a=({_NAME}))?,)(n=({_NAME}),r=({_NONCE}){_EXTENSIONS})")
_FINAL = re.compile(rf"(c=({_BASE64}),r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})")


class ScramExchange:
    """The server's side of one authentication.

    Parameters
    ----------
    mechanism : str
    users : Users

    Attributes
    ----------
    is_complete : bool
        Whether the client has proved that it knows the password.
    """

    def __init__(self, mechanism: str, users: Users) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._users = users
        self._challenge = ""
        self.is_complete = False

    def answer(self, message: str) -> str:
        """Take the first or the final message of the client.

        Raises
        ------
        AuthenticationFailedError
            When it is none, or proves nothing.
        """
        return self._verified(message) if self._challenge else self._challenged(message)

    def _challenged(self, message: str) -> str:
        match = _FIRST.fullmatch(message)
        if match is None:
            raise AuthenticationFailedError(f"{self._mechanism}: the first message is not one of SCRAM")
        self._header, authorization_id, self._first, name, nonce = match.groups()
        name = _unescaped(name)
        credential = self._users.credential(self._mechanism, name)
        if credential is None:
            raise AuthenticationFailedError(f"user {name!r:.100}: unknown")
        if authorization_id is not None and _unescaped(authorization_id) != name:
            raise AuthenticationFailedError(f"user {name!r:.100}: asks for the rights of another one")
        self._name, self._credential = name, credential
        self._nonce = nonce + secrets.token_hex()
        self._challenge = f"r={self._nonce},s={_base64(credential.salt)},i={credential.iterations}"
        return self._challenge

    def _verified(self, message: str) -> str:
        match = _FINAL.fullmatch(message)
        if match is None:
            raise AuthenticationFailedError(f"{self._mechanism}: the final message is not one of SCRAM")
        without_proof, header, nonce, proof = match.groups()
        if header != _base64(self._header.encode()) or nonce != self._nonce:
            raise AuthenticationFailedError(f"user {self._name!r:.100}: the final message answers another challenge")
        signed = f"{self._first},{self._challenge},{without_proof}".encode()
        signature = hmac.digest(self._credential.stored_key, signed, self._hash)
        client_key = int.from_bytes(signature) ^ int.from_bytes(_decoded(proof, len(signature)))
        stored_key = hashlib.new(self._hash, client_key.to_bytes(len(signature))).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise AuthenticationFailedError(f"user {self._name!r:.100}: another password")
        self.is_complete = True
        return f"v={_base64(hmac.digest(self._credential.server_key, signed, self._hash))}"


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(proof: str, size: int) -> bytes:
    try:
        decoded = base64.b64decode(proof, validate=True)
    except binascii.Error:
        decoded = b""
    if len(decoded) != size:
        raise AuthenticationFailedError(f"expected a proof of {size} bytes in base64")
    return decoded
