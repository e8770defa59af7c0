"""TLS of a server's connections."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk

_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")  # the last of another algorithm


@dataclass(frozen=True)
class Tls:
    """The certificate that a server shows, and which certificates it asks its clients for.

    Attributes
    ----------
    certificate : path
        PEM file with the certificate and those of the authorities between (``ssl.keystore.certificate.chain``).
    key : path or None
        PEM file with its private key, which has no password (``ssl.keystore.key``); None if it is in the same file.
    client_authorities : path or None
        PEM file with the authorities that sign certificates of clients (``ssl.truststore.certificates``). A client
        without such a certificate is then refused (``ssl.client.auth=required``); by default none is asked for.

    Examples
    --------
    >>> import kraftlog
    >>> kraftlog.Tls("server.pem", "server.key")
    Tls(certificate='server.pem', key='server.key', client_authorities=None)
    """

    certificate: str | Path
    key: str | Path | None = None
    client_authorities: str | Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the settings of connections, with TLS 1.2 or later.

        Raises
        ------
        ValueError
            When a file has no certificate or key, the key is that of another certificate, or has a password.
        OSError
            When a file cannot be read.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        key = self.key or self.certificate
        _expect(self.certificate, "certificate")
        _expect(key, "private key")

        def refuse() -> str:  # without it, OpenSSL asks at the terminal
            raise ValueError(f"{key}: expected a private key without a password, found an encrypted one")

        try:
            context.load_cert_chain(self.certificate, key, password=refuse)
        except ssl.SSLError as error:
            if error.reason in _OTHER_KEY:
                message = f"{key}: expected the private key of the certificate in {self.certificate}, found another one"
            else:
                message = f"{self.certificate} and {key}: expected a certificate and its key in PEM, found {error}"
            raise ValueError(message) from error
        if self.client_authorities is not None:
            _expect(self.client_authorities, "certificate")
            try:
                context.load_verify_locations(self.client_authorities)
            except ssl.SSLError as error:
                raise ValueError(f"{self.client_authorities}: expected certificates in PEM, found {error}") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _expect(path: str | Path, kind: str) -> None:
    """Refuse a file without this kind of PEM: the errors of OpenSSL name no file."""
    if not re.search(rb"-----BEGIN [A-Z ]*" + kind.upper().encode() + b"-----", disk().read_bytes(Path(path))):
        raise ValueError(f"{path}: expected a {kind} in PEM, found none")
