"""Certificates of the admission webhook: an authority that signs one certificate and whose key is thrown away, and when the next is due.

These are pure functions but for the keys' randomness; `keeping` stores the results. Each renewal makes a new authority. Its certificate is
in the bundle together with the previous one until all callers know it, so that no call fails.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE: Final = timedelta(days=90)
RENEW_AFTER: Final = LIFE * 2 / 3
SETTLE: Final = timedelta(minutes=5)
"""How long a new authority is in the bundle before its certificate is used, so that every API server knows it by then."""
SKEW: Final = timedelta(hours=1)
"""How wrong clocks may be: a certificate is valid from this long before it was made."""

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the Secret holds, as PEM."""

    shown: Pair
    """The certificate and key that the server uses."""
    authorities: str
    """The bundle that a caller is to trust: the authorities of all certificates that the server may use."""
    next: Pair | None = None
    """The pair that the server uses next, once all callers trust its authority."""

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Self | None:
        """None where there is nothing yet."""
        if not data.get(CERTIFICATE) or not data.get(KEY):
            return None
        following = None
        if data.get(NEXT_CERTIFICATE) and data.get(NEXT_KEY):
            following = Pair(data[NEXT_CERTIFICATE], data[NEXT_KEY])
        shown = Pair(data[CERTIFICATE], data[KEY])
        return cls(shown=shown, authorities=data.get(CA, ""), next=following)

    def data(self) -> dict[str, str]:
        found = {CA: self.authorities, CERTIFICATE: self.shown.certificate, KEY: self.shown.key}
        if self.next is not None:
            found |= {NEXT_CERTIFICATE: self.next.certificate, NEXT_KEY: self.next.key}
        return found


def renewed(kept: Kept | None, hosts: Sequence[str], now: datetime) -> Kept:
    """What should be kept now, which is `kept` itself where nothing is due. `now` has a time zone."""
    if kept is None or not _good(kept, hosts, now):
        pair, authority = made(hosts, now)
        return Kept(shown=pair, authorities=authority)
    if kept.next is not None and not _good(replace(kept, shown=kept.next), hosts, now):
        kept = replace(kept, next=None)
    if kept.next is not None:
        return replace(kept, shown=kept.next, next=None) if now >= _made(kept.next) + SETTLE else kept
    if now < _made(kept.shown) + RENEW_AFTER:
        return kept
    pair, authority = made(hosts, now)
    return replace(kept, authorities=authority + _signer_of(kept), next=pair)


def made(hosts: Sequence[str], now: datetime) -> tuple[Pair, str]:
    """A certificate for these names and addresses, and the authority that signed it."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    # The name is unique, so that the authority of a certificate can be found in the bundle later.
    authority = _common_name(f"plimsoll webhook {secrets.token_hex(8)}")
    issuer = (
        _builder(authority, authority, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_common_name(hosts[0]), authority, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(one) for one in hosts]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    words = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return Pair(_pem(certificate), words), _pem(issuer)


def _good(kept: Kept, hosts: Iterable[str], now: datetime) -> bool:
    """Whether what is shown can be used: key and certificate fit, it is for these names, not expired, and signed by one of the bundle."""
    try:
        certificate = x509.load_pem_x509_certificate(kept.shown.certificate.encode())
        key = serialization.load_pem_private_key(kept.shown.key.encode(), None)
        if key.public_key() != certificate.public_key():
            return False
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        known = {str(one.value) for one in names}
        return set(hosts) <= known and now < certificate.not_valid_after_utc and bool(_signer_of(kept))
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return False


def _signer_of(kept: Kept) -> str:
    """The authority in the bundle that signed the certificate which is shown; empty where none did."""
    certificate = x509.load_pem_x509_certificate(kept.shown.certificate.encode())
    bundle = x509.load_pem_x509_certificates(kept.authorities.encode())
    return next((_pem(one) for one in bundle if one.subject == certificate.issuer), "")


def _made(pair: Pair) -> datetime:
    return x509.load_pem_x509_certificate(pair.certificate.encode()).not_valid_before_utc + SKEW


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _common_name(text: str) -> x509.Name:
    # A common name may have 64 characters. Cutting it does no harm, as callers check the alternative names alone.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
