"""Keys of encrypted segments: wrapped in their manifests by RSA, as Aiven's plugin does."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import AnyPath, log_path
from kraftlog.errors import KraftlogError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers

KEY_BYTES = 32
_HASH = hashlib.sha3_512
_HASH_BYTES = 64


class WrongKeyError(KraftlogError, ValueError):
    """A key that is missing, cannot be read, or does not match."""


class KeyRing:
    """The private keys that unwrap the keys of segments; each file is read on first use.

    Parameters
    ----------
    files : mapping of str to path
        PEM files with a private key (PKCS#8), by the name of the key pair.

    Attributes
    ----------
    files : tuple of (str, str)
    """

    def __init__(self, files: Mapping[str, AnyPath]) -> None:
        self._files = dict(files)
        self.files = tuple(sorted((name, str(path)) for name, path in files.items()))
        self._read: dict[str, RSAPrivateNumbers] = {}

    def unwrap(self, wrapped: str) -> bytes:
        """Return a data key.

        Parameters
        ----------
        wrapped : str
            The name of a key pair, ``:``, and base64 of the key in RSA with OAEP, of SHA3-512.

        Raises
        ------
        WrongKeyError
            When there is no such key, or it does not match.
        """
        name, separator, text = wrapped.partition(":")
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error:
            data = b""
        if not separator or not name or not data:
            raise WrongKeyError("encryption.dataKey: expected the name of a key pair, a colon and base64")
        private = self._private(name)
        size = (private.public_numbers.n.bit_length() + 7) // 8
        if len(data) != size:
            what = f"expected {size} bytes, the size of its modulus, found {len(data)}"
            raise WrongKeyError(f"encryption.dataKey does not match the key {name!r}: {what}")
        key = _without_padding(_undone(int.from_bytes(data), private).to_bytes(size))
        if key is None or len(key) != KEY_BYTES:
            raise WrongKeyError(f"encryption.dataKey does not match the key {name!r}: it cannot be decrypted")
        return key

    def _private(self, name: str) -> RSAPrivateNumbers:
        if name not in self._files:
            key_names = ", ".join(sorted(self._files)) or "none"
            raise WrongKeyError(
                f"encrypted for the key pair {name!r}: expected its private key, found keys for {key_names}"
            )
        if name not in self._read:
            self._read[name] = _read_private(name, self._files[name])
        return self._read[name]


def _read_private(name: str, file: AnyPath) -> RSAPrivateNumbers:
    try:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise WrongKeyError("encrypted, and cryptography is not installed; pip install 'kraftlog[tiered]'") from None
    path = log_path(file)
    try:
        key = load_pem_private_key(disk().read_bytes(path), password=None)
    except OSError as error:
        raise WrongKeyError(f"the key {name!r} cannot be read: {path}: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise WrongKeyError(f"the key {name!r}: {path}: expected a private key in PEM, found: {error}") from error
    if not isinstance(key, RSAPrivateKey):
        raise WrongKeyError(f"the key {name!r}: {path}: expected a private key of RSA, found {type(key).__name__}")
    return key.private_numbers()


def _undone(number: int, private: RSAPrivateNumbers) -> int:
    """Return a number to the power of the private exponent; by the Chinese remainder theorem (RFC 8017, 5.1.2).

    ``cryptography`` has no OAEP with SHA3-512, nor RSA without a padding.
    """
    of_p = pow(number % private.p, private.dmp1, private.p)
    of_q = pow(number % private.q, private.dmq1, private.q)
    return of_q + private.q * ((of_p - of_q) * private.iqmp % private.p)


def _without_padding(block: bytes) -> bytes | None:
    """Return the message in OAEP (RFC 8017, 7.1.2) with SHA3-512 and an empty label; None if it is invalid."""
    if len(block) < 2 * _HASH_BYTES + 2:
        return None
    seed_mask, masked = block[1 : 1 + _HASH_BYTES], block[1 + _HASH_BYTES :]
    seed = _xor(seed_mask, _mask(masked, _HASH_BYTES))
    content = _xor(masked, _mask(seed, len(masked)))
    rest = content[_HASH_BYTES:].lstrip(b"\0")
    is_sound = block[0] == 0 and hmac.compare_digest(content[:_HASH_BYTES], _HASH(b"").digest())
    return rest[1:] if is_sound and rest[:1] == b"\1" else None


def _mask(seed: bytes, size: int) -> bytes:
    """Return a mask of MGF1."""
    count = -(-size // _HASH_BYTES)
    return b"".join(_HASH(seed + number.to_bytes(4)).digest() for number in range(count))[:size]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
