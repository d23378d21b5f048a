"""What the operator's servers present to whoever connects: a certificate that may be renewed while they listen.

Where certificates come from, and when to look again, is each server's own.
"""

from __future__ import annotations

import ssl
from pathlib import Path


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def present(shown: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """To whoever connects next. Raises OSError where they are none or no pair, and then what was shown before stays."""
    # One that fails leaves a context with half of it, and no connection would be taken any more.
    context().load_cert_chain(certificate, key)
    shown.load_cert_chain(certificate, key)
