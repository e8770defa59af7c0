"""Certificates for tests: an authority, a server and a client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Certificates(NamedTuple):
    """PEM files: of the authority, and certificates with their keys."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def certificates(folder: Path) -> Certificates:
    """Make an authority, and what it has signed for 127.0.0.1 and for a client."""
    folder.mkdir(parents=True)
    files = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    authority_key, authority_name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
    authority = _signed(authority_name, authority_key, authority_name, authority_key, is_authority=True)
    files.authority.write_bytes(_pem(authority))
    for name, path, key_path in (
        ("server", files.server, files.server_key),
        ("client", files.client, files.client_key),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        path.write_bytes(_pem(_signed(_name(name), key, authority_name, authority_key, is_authority=False)))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _signed(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )
