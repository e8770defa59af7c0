"""The key of an encrypted repository of backups.

Objects are AES-256-GCM in chunks: 12 bytes of nonce, ciphertext and tag each. Every object has a key of its own, which
is derived from the key of the repository and the object's name; the number of a chunk is its additional data. An object
under another name, and a chunk at another place, therefore do not decrypt.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.part_path import Chunks
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, KraftlogError
from kraftlog.types import Buffer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "KRAFTLOG_BACKUP_KEYS"  # the environment variable that names a file with keys
CIPHER = "AES-256-GCM"
SECRET_BYTES = 32
CHUNK_BYTES = 256 << 10
NONCE_BYTES, TAG_BYTES = 12, 16


class BackupKeyError(KraftlogError, ValueError):
    """The key of an encrypted repository is missing, cannot be read, or is another one."""


@dataclass(frozen=True)
class BackupKey:
    """The key of an encrypted repository.

    Attributes
    ----------
    secret : bytes
        32 random bytes.

    Examples
    --------
    >>> from kraftlog.disk.backup_key import BackupKey
    >>> key = BackupKey(bytes(32))
    >>> key.key_id
    '4c89defaf22ecf64'
    >>> key.opened("list", key.sealed("list", b"content"))
    b'content'
    """

    secret: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """What names the key; it does not say what it is."""
        return self._derived("id", "").hex()[:16]

    @property
    def encryption(self) -> dict[str, Any]:
        """What the marker of a repository says."""
        return {"cipher": CIPHER, "chunk_bytes": CHUNK_BYTES, "key_id": self.key_id}

    def name_of(self, sha256: str) -> str:
        """Return what stands for a digest of content in the name of an object; without the key it says nothing."""
        return self._derived("name", sha256).hex()

    def chunks(self, name: str, size: int) -> Chunks:
        """Return how an object is stored.

        Parameters
        ----------
        name : str
        size : int
            Bytes of its content.
        """
        whole, rest = divmod(size, CHUNK_BYTES)
        sizes = [CHUNK_BYTES] * whole + [rest] * bool(rest)
        stored = tuple(NONCE_BYTES + one + TAG_BYTES for one in sizes)
        return Chunks(CHUNK_BYTES, size, stored, data_key=self._derived("object", name), is_numbered=True)

    def encrypted(self, name: str, pieces: Iterable[Buffer]) -> Iterator[bytes]:
        """Return the bytes of an object as they are stored, chunk by chunk."""
        cipher = _cipher(self._derived("object", name))
        waiting, number = bytearray(), 0
        for piece in pieces:
            waiting += piece
            while len(waiting) >= CHUNK_BYTES:
                yield _encrypted(cipher, bytes(waiting[:CHUNK_BYTES]), number)
                del waiting[:CHUNK_BYTES]
                number += 1
        if waiting:
            yield _encrypted(cipher, bytes(waiting), number)

    def sealed(self, name: str, data: bytes) -> bytes:
        """Return a manifest or list as it is stored."""
        return _encrypted(_cipher(self._derived("file", name)), data, 0)

    def opened(self, name: str, data: bytes) -> bytes:
        """Return the content of a manifest or list.

        Raises
        ------
        CorruptRecordError
            When it was changed, or is that of another name.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return _cipher(self._derived("file", name)).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _number(0))
        except (InvalidTag, ValueError):
            message = f"{name}: expected a matching tag of {CIPHER}, found another: the file was changed"
            raise CorruptRecordError(message) from None

    def _derived(self, use: str, name: str) -> bytes:
        return hmac.digest(self.secret, f"kraftlog-backup {use} {name}".encode(), hashlib.sha256)


def _encrypted(cipher: AESGCM, data: bytes, number: int) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, data, _number(number))


def _number(number: int) -> bytes:
    return number.to_bytes(8)


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise BackupKeyError("encrypted, and cryptography is not installed; pip install 'kraftlog[tiered]'") from None
    return AESGCM(key)


def opened(key: BackupKey | None, path: LogPath, data: bytes) -> bytes:
    """Return the content of a manifest or list from its stored bytes.

    Raises
    ------
    CorruptRecordError
        When it was changed.
    """
    return data if key is None else key.opened(path.name, data)


def new_key() -> BackupKey:
    """Return the key for a new repository: the first one in the file of keys."""
    return _keys()[0]


def key_of(encryption: Mapping[str, Any] | None, repository: LogPath) -> BackupKey | None:
    """Return the key of a repository, by what its marker says; None if it is not encrypted.

    Raises
    ------
    BackupKeyError
        When the file of keys does not have it.
    """
    if encryption is None:
        return None
    cipher, key_id = encryption.get("cipher"), encryption.get("key_id")
    if cipher != CIPHER or encryption.get("chunk_bytes") != CHUNK_BYTES:
        raise BackupKeyError(f"{repository}: expected {CIPHER} in chunks of {CHUNK_BYTES} bytes, found {encryption}")
    for key in _keys(f"{repository}: "):
        if key.key_id == key_id:
            return key
    raise BackupKeyError(f"{repository}: encrypted with the key {key_id}, which is not in {os.environ[KEY_FILE]}")


def _keys(where: str = "") -> list[BackupKey]:
    name = os.environ.get(KEY_FILE)
    if not name:
        raise BackupKeyError(f"{where}encrypted: expected the name of a file with its key in {KEY_FILE}, found none")
    try:
        file = LocalFile(Path(name))
        try:
            lines = file.read(0, file.size).split()
        finally:
            file.close()
    except OSError as error:
        raise BackupKeyError(f"{where}{KEY_FILE}: {name}: the keys cannot be read: {error}") from error
    keys = []
    for number, line in enumerate(lines, 1):
        try:
            secret = base64.b64decode(line, validate=True)
        except binascii.Error:
            secret = b""
        if len(secret) != SECRET_BYTES:  # the line is not shown: it may be a key that was cut
            raise BackupKeyError(f"{name}: key {number}: expected base64 of {SECRET_BYTES} bytes, found something else")
        keys.append(BackupKey(secret))
    if not keys:
        raise BackupKeyError(f"{name}: expected base64 of {SECRET_BYTES} bytes, found an empty file")
    return keys
