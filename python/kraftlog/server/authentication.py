"""Authentication of a connection by SASL, before its requests are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.scram import ScramExchange
from kraftlog.server.users import PLAIN, AuthenticationFailedError, Users
from kraftlog.types import Buffer

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_RAW = 0  # version of a handshake behind which tokens are frames without a header
_NO_PROOF = "Authentication failed during authentication due to invalid credentials with SASL mechanism"


class Authentication:
    """What a connection has done to authenticate itself, as ``SaslServerAuthenticator`` of a broker keeps it.

    Parameters
    ----------
    users : Users

    Attributes
    ----------
    is_complete : bool
        Whether its requests may be answered.
    takes_raw_tokens : bool
        Whether its frames are tokens without a header, as those of clients before Kafka 1.0.
    failure : str or None
        Why it has failed; the connection ends behind the response.
    """

    def __init__(self, users: Users) -> None:
        self._users = users
        self._mechanism: str | None = None
        self._scram: ScramExchange | None = None
        self.is_complete = False
        self.takes_raw_tokens = False
        self.failure: str | None = None

    @property
    def handlers(self) -> Mapping[int, Any]:
        """The handlers of its requests, by API key."""
        return {SASL_HANDSHAKE: self._handshake, SASL_AUTHENTICATE: self._authenticate}

    async def _handshake(self, request: Request) -> Mapping[str, Any]:
        code, mechanisms = ErrorCode.NONE, self._users.mechanisms
        if self._mechanism is not None or self.is_complete:
            code = ErrorCode.ILLEGAL_SASL_STATE
            self.failure = "a second SaslHandshake"
        elif request.values["mechanism"] not in mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            self.failure = f"mechanism {request.values['mechanism']!r:.100} is not one of {', '.join(mechanisms)}"
        else:
            self._mechanism = request.values["mechanism"]
            self.takes_raw_tokens = request.version == _RAW
        return {"error_code": code, "mechanisms": list(mechanisms)}

    async def _authenticate(self, request: Request) -> Mapping[str, Any]:
        if self._mechanism is None or self.is_complete:
            self.failure = "a SaslAuthenticate that no SaslHandshake precedes"
            return _refusal(ErrorCode.ILLEGAL_SASL_STATE, self.failure)
        try:
            token = self.token(request.values["auth_bytes"])
        except AuthenticationFailedError as error:
            self.failure = str(error)
            return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{_NO_PROOF} {self._mechanism}")
        return {"error_code": ErrorCode.NONE, "error_message": None, "auth_bytes": token}

    def token(self, token: Buffer) -> bytes:
        """Take a token of the client, and return that of the server.

        Raises
        ------
        AuthenticationFailedError
            When it is not that of a user.
        """
        try:
            text = str(memoryview(token), "utf-8")
        except UnicodeDecodeError as error:
            raise AuthenticationFailedError(f"a token that is not UTF-8: {error}") from None
        return self._plain(text) if self._mechanism == PLAIN else self._scram_token(text)

    def _plain(self, token: str) -> bytes:
        """Take authorization id, name and password, separated by NUL (RFC 4616)."""
        parts = token.split("\0")
        if len(parts) != 3:
            raise AuthenticationFailedError(f"a token of {len(parts)} parts, of 3")
        authorization_id, name, password = parts
        if authorization_id not in ("", name) or not self._users.has(name, password):
            raise AuthenticationFailedError(f"user {name!r:.100}: unknown, or another password")
        self.is_complete = True
        return b""

    def _scram_token(self, token: str) -> bytes:
        """Take the first or the final message of a client (RFC 5802)."""
        if self._scram is None:
            self._scram = ScramExchange(str(self._mechanism), self._users)
        answer = self._scram.answer(token)
        self.is_complete = self._scram.is_complete
        return answer.encode()


def _refusal(code: ErrorCode, message: str) -> dict[str, Any]:
    return {"error_code": code, "error_message": message, "auth_bytes": b""}
