"""TLS of the operator's servers, whose certificates may be renewed while they listen. Each server gets its certificates itself."""

from __future__ import annotations

import ssl
from pathlib import Path


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def present(shown: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Uses a certificate for new connections. Raises OSError where certificate and key cannot be used, and then the one before stays."""
    # Tried on another context first: a failed load leaves a context with half a pair, with which no connection succeeds.
    context().load_cert_chain(certificate, key)
    shown.load_cert_chain(certificate, key)
