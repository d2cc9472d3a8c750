"""TLS to the hub: always verified, against the system's certificate authorities or the operator's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuherd.model.errors import Misconfigured

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["tls_context"]


def tls_context(ca_file: str | None) -> SSLContext:
    """Make the context for an https hub; ``Misconfigured`` if the file holds no certificates."""
    import ssl  # noqa: PLC0415 - --once and --print do without

    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise Misconfigured(
            f"agent.tls_ca_file: {ca_file} cannot be used ({error.strerror or error}); it must be readable and hold "
            "certificates in PEM form"
        ) from error
