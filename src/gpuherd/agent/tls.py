"""TLS, to a hub that is dialled (always verified) and for a hub that dials."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpuherd.model.errors import Misconfigured

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["certificate_in", "server_tls_context", "tls_context"]


def tls_context(ca_file: str | None) -> SSLContext:
    """Make the context for an https hub; ``Misconfigured`` if the file holds no certificates."""
    import ssl  # noqa: PLC0415 - --once and --print do without

    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise Misconfigured(
            f"agent.tls_ca_file: {ca_file} cannot be used ({error.strerror or error}); it must be readable "
            "and contain certificates in PEM format"
        ) from error


def server_tls_context(certificate: str, key: str) -> SSLContext:
    """Make the context of a listening agent; ``Misconfigured`` if the files do not hold a certificate and its key."""
    import ssl  # noqa: PLC0415

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise Misconfigured(
            f"agent.listen_tls_certificate, agent.listen_tls_key: {certificate} and {key} cannot be used "
            f"({error.strerror or error}); they must be readable and contain a certificate and its key in "
            "PEM format"
        ) from error
    return context


def certificate_in(file: str) -> bytes:
    """Give the first certificate of a PEM file in DER form: the one that the other side is shown."""
    import ssl  # noqa: PLC0415

    found = re.search(
        r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----",
        Path(file).read_text(encoding="ascii", errors="replace"),
        re.DOTALL,
    )
    if found is None:
        raise Misconfigured(f"agent.listen_tls_certificate: {file} contains no certificate in PEM format")
    return ssl.PEM_cert_to_DER_cert(found[0])
