"""TLS of a server's connections."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk


@dataclass(frozen=True)
class Tls:
    """The certificate that a server shows, and which certificates it asks its clients for.

    Attributes
    ----------
    certificate : Path
        PEM file with the certificate and those of the authorities between (``ssl.keystore.certificate.chain``).
    key : Path or None
        PEM file with its private key, which has no password (``ssl.keystore.key``); None if it is in the same file.
    client_authorities : Path or None
        PEM file with the authorities that sign certificates of clients (``ssl.truststore.certificates``). A client
        without such a certificate is then refused (``ssl.client.auth=required``); by default none is asked for.

    Examples
    --------
    >>> from pathlib import Path
    >>> import kraftlog
    >>> kraftlog.Tls(Path("server.pem"), Path("server.key")).client_authorities is None
    True
    """

    certificate: Path
    key: Path | None = None
    client_authorities: Path | None = None

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
        for path in filter(None, (self.certificate, self.key, self.client_authorities)):
            disk().read_bytes(path)  # the errors of OpenSSL do not name the file
        try:
            context.load_cert_chain(self.certificate, key, password=_no_password)
        except ssl.SSLError as error:
            raise ValueError(
                f"{self.certificate} and {key}: expected a certificate and its private key without a password, "
                f"as PEM, found {_reason(error)}"
            ) from error
        if self.client_authorities is not None:
            try:
                context.load_verify_locations(self.client_authorities)
            except ssl.SSLError as error:
                raise ValueError(
                    f"{self.client_authorities}: expected certificates as PEM, found {_reason(error)}"
                ) from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _no_password() -> str:
    """Return no password: OpenSSL would ask for one at the terminal."""
    return ""


def _reason(error: ssl.SSLError) -> str:
    return error.reason or str(error)
