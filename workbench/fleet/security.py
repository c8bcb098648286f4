"""TLS between the hosts of a fleet: one certificate for each fleet, made when it comes up.

Whoever holds it may send pickled tasks to every host, so it is a secret: it lies in a file of its
owner's alone, crosses to hosts inside SSH, and ends with the fleet.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Security

VALID_DAYS = 30
VALID_BEFORE = timedelta(days=2)
"""A certificate is valid from so long before it is made: clocks of hosts differ, by up to 14 h
where one that is in local time is taken for one in UTC."""
PIECE_OF_KEY = 16
"""Characters of a private key that are not told on."""


@dataclass(frozen=True)
class Secrets:
    """Certificate and key as PEM; `authority` is who signed it, empty: the certificate itself."""

    certificate: str
    key: str
    authority: str = ""

    def __repr__(self) -> str:
        return "Secrets(...)"

    def security(self) -> Security:
        from distributed import Security

        own = {"cert": self.certificate, "key": self.key}
        return Security(
            tls_ca_file=self.authority or self.certificate,
            require_encryption=True,
            tls_min_version=ssl.TLSVersion.TLSv1_3,
            **{
                f"tls_{who}_{part}": own[part]
                for who in ("client", "scheduler", "worker")
                for part in own
            },
        )


def made(now: datetime | None = None) -> Secrets:
    """A new self-signed certificate with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "workbench-fleet")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_BEFORE)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Secrets(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )


def expired(secrets: Secrets) -> str:
    """Since when a certificate holds no more, in words; empty where it does. Raises `ValueError`
    where it is none."""
    from cryptography import x509

    until = x509.load_pem_x509_certificate(secrets.certificate.encode()).not_valid_after_utc
    return f"{until:%Y-%m-%d %H:%M} UTC" if until < datetime.now(UTC) else ""


def without_key(text: str, secrets: Secrets) -> str:
    """What a host said, with nothing of the private key in it."""
    key = "".join(secrets.key.splitlines())

    def told(found: re.Match[str]) -> str:
        word = found[0]
        starts = range(len(word) - PIECE_OF_KEY + 1)
        return "·" if any(word[at : at + PIECE_OF_KEY] in key for at in starts) else word

    return re.sub(rf"[A-Za-z0-9+/=]{{{PIECE_OF_KEY},}}", told, text)


def configure() -> None:
    """What Dask does otherwise, such as to look by its time of day for hosts that went silent:
    whoever set this host's clock ahead would lose all of them at once (`hearing`)."""
    import dask

    dask.config.set(
        {
            "distributed.scheduler.worker-ttl": None,
            "distributed.scheduler.allowed-failures": 1000,  # a host that dies is our affair
            "distributed.scheduler.work-stealing": False,
            "distributed.worker.profile.enabled": False,
            # How late its loop is, every 20 ms, and the host's load, twice a second, are of no use
            # here: without them a worker at rest burns a third of what it did on a lab's core.
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False,
            "distributed.comm.timeouts.connect": "10s",
            "distributed.comm.require-encryption": True,
            "distributed.admin.large-graph-warning-threshold": "256MB",
        }
    )
