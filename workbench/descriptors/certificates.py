"""Whether a certificate that a hosts file names holds now."""

from __future__ import annotations

from datetime import UTC, datetime


def not_held_now(certificate: str) -> str:
    """Why a certificate in PEM does not hold now, in words; empty where it does. Raises
    `ValueError` where it is none."""
    from cryptography import x509  # takes time, and few files name one

    read, now = x509.load_pem_x509_certificate(certificate.encode()), datetime.now(UTC)
    if now < read.not_valid_before_utc:
        return f"is not valid yet: it is from {_told(read.not_valid_before_utc)} on"
    if now > read.not_valid_after_utc:
        return f"expired on {_told(read.not_valid_after_utc)}"
    return ""


def _told(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
