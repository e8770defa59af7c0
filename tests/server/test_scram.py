"""SCRAM, message by message: the example of its RFC, what a client proves, and messages that prove nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import re
from collections.abc import Callable

import pytest

from kraftlog.server.scram import ScramExchange
from kraftlog.server.users import HASHES, AuthenticationFailedError, ScramCredential, Users

PASSWORDS = {"user": "pencil", "bob=,": "pass,word=é", "a=2Cb": "another"}
MECHANISMS = sorted(HASHES)


@pytest.fixture(scope="module")
def users() -> Users:
    return Users(PASSWORDS)


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("secrets.token_bytes", lambda _: base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    monkeypatch.setattr("secrets.token_hex", lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    exchange = ScramExchange("SCRAM-SHA-256", Users(PASSWORDS))
    challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.answer("n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == challenge
    assert not exchange.is_complete
    final = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.answer(final) == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.is_complete


class ScramClient:
    """A client by the formulas of RFC 5802, which can break its final message."""

    def __init__(self, mechanism: str, password: str, header: str = "n,,") -> None:
        self._hash = HASHES[mechanism]
        self._password = password
        self._header = header

    def final(self, first: str, challenge: str, extensions: str = "") -> str:
        """Return the final message."""
        nonce, salt, iterations = re.fullmatch("r=(.*),s=(.*),i=(.*)", challenge).groups()  # type: ignore[union-attr]
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), base64.b64decode(salt), int(iterations))
        without_proof = f"c={base64.b64encode(self._header.encode()).decode()},r={nonce}{extensions}"
        self._signed = f"{first.removeprefix(self._header)},{challenge},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), self._signed, self._hash)
        self._server_key = hmac.digest(salted, b"Server Key", self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}"

    def is_server(self, answer: str) -> bool:
        """Whether the server knows the password as well."""
        return answer == f"v={base64.b64encode(hmac.digest(self._server_key, self._signed, self._hash)).decode()}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("name", "header", "first", "extensions"),
    [
        ("user", "n,,", "n=user,r=abc", ""),
        ("user", "n,,", "n=user,r=abc,tokenauth=false", ",x=1"),
        ("user", "n,a=user,", "n=user,r=!~", ""),
        ("bob=,", "n,,", "n=bob=3D=2C,r=abc", ""),
        ("bob=,", "n,a=bob=3D=2C,", "n=bob=3D=2C,r=abc", ""),
        ("a=2Cb", "n,,", "n=a=3D2Cb,r=abc", ""),
    ],
)
def test_both_prove_that_they_know_the_password(
    users: Users, mechanism: str, name: str, header: str, first: str, extensions: str
):
    exchange = ScramExchange(mechanism, users)
    client = ScramClient(mechanism, PASSWORDS[name], header)
    challenge = exchange.answer(header + first)
    assert client.is_server(exchange.answer(client.final(header + first, challenge, extensions)))
    assert exchange.is_complete


@pytest.mark.parametrize(
    "first",
    [
        "",
        "n,,",
        "n,,n=user",
        "n,,n=,r=abc",
        "n,,n=user,r=",
        "n,,n=user,r=a c",
        "n,,n=us=er,r=abc",
        "n,,n=us\0er,r=abc",
        "n,,r=abc,n=user",
        "n,,m=x,n=user,r=abc",
        "n,,n=user,r=abc,1=x",
        "n,,n=user,r=abc\n",
        "y,,n=user,r=abc",
        "p=tls-unique,,n=user,r=abc",
        "n,a=other,n=user,r=abc",
        "n,,n=other,r=abc",
        "n,,n=USER,r=abc",
    ],
)
def test_first_messages_that_are_refused(users: Users, first: str):
    exchange = ScramExchange("SCRAM-SHA-256", users)
    with pytest.raises(AuthenticationFailedError):
        exchange.answer(first)
    assert not exchange.is_complete


def flipped(final: str) -> str:
    """Return a final message with another bit in its proof."""
    without, _, proof = final.rpartition(",p=")
    data = bytearray(base64.b64decode(proof))
    data[random.Random(final).randrange(len(data))] ^= 1
    return f"{without},p={base64.b64encode(data).decode()}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "change",
    [
        flipped,
        lambda final: "",
        lambda final: final.rpartition(",p=")[0],
        lambda final: re.sub(",p=.*", ",p=", final),
        lambda final: re.sub(",p=.*", ",p=AAAA", final),
        lambda final: re.sub(",p=.*", ",p=A", final),
        lambda final: re.sub(",p=.*", f",p={'////' * 40}", final),
        lambda final: final[:-4],
        lambda final: final + "AAAA",
        lambda final: final.replace(",r=abc", ",r=abd"),
        lambda final: re.sub(",r=[^,]*", ",r=abc", final),
        lambda final: final.replace("c=biws", "c=eSws"),
        lambda final: final.replace("c=biws,", ""),
        lambda final: final.replace(",p=", ",x=1,p="),
    ],
)
def test_final_messages_that_are_refused(users: Users, mechanism: str, change: Callable[[str], str]):
    exchange = ScramExchange(mechanism, users)
    first = "n,,n=user,r=abc"
    final = ScramClient(mechanism, "pencil").final(first, exchange.answer(first))
    assert change(final) != final
    with pytest.raises(AuthenticationFailedError):
        exchange.answer(change(final))
    assert not exchange.is_complete


def test_a_final_message_that_was_overheard(users: Users):
    exchanges = [ScramExchange("SCRAM-SHA-256", users) for _ in range(2)]
    first = "n,,n=user,r=abc"
    challenges = [one.answer(first) for one in exchanges]
    final = ScramClient("SCRAM-SHA-256", "pencil").final(first, challenges[0])
    with pytest.raises(AuthenticationFailedError, match="another challenge"):
        exchanges[1].answer(final)
    assert exchanges[0].answer(final)


def test_a_final_message_with_another_header(users: Users):
    """Somebody between the two has changed what the client said of channel binding."""
    exchange = ScramExchange("SCRAM-SHA-256", users)
    challenge = exchange.answer("n,,n=user,r=abc")
    with pytest.raises(AuthenticationFailedError, match="another challenge"):
        exchange.answer(ScramClient("SCRAM-SHA-256", "pencil", "y,,").final("y,,n=user,r=abc", challenge))


def test_a_wrong_password(users: Users):
    exchange = ScramExchange("SCRAM-SHA-512", users)
    first = "n,,n=user,r=abc"
    with pytest.raises(AuthenticationFailedError, match="user 'user': another password"):
        exchange.answer(ScramClient("SCRAM-SHA-512", "Pencil").final(first, exchange.answer(first)))


def test_credentials_differ_by_user_and_mechanism_and_stay():
    users = Users({"one": "same", "other": "same"})
    credentials = [users.credential(mechanism, name) for mechanism in MECHANISMS for name in ("one", "other")]
    assert len({one.salt for one in credentials if one is not None}) == 4
    again = [users.credential(mechanism, name) for mechanism in MECHANISMS for name in ("one", "other")]
    assert again == credentials
    assert users.credential("SCRAM-SHA-256", "nobody") is None
    assert all(isinstance(one, ScramCredential) and one.iterations >= 4096 for one in credentials)
