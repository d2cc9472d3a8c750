"""What can be wrong with a hub's certificate, told apart."""

from __future__ import annotations

import ssl

from gpuherd.model.text import clean
from gpuherd.wiring.doctor.steps import StepFailed

__all__ = ["certificate_failure"]

# OpenSSL's X509_V_ERR numbers.
_EXPIRED, _NOT_YET_VALID = 10, 9
_WRONG_NAME = (62, 64)
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)


def certificate_failure(error: ssl.SSLCertVerificationError, host: str) -> StepFailed:
    """Say what is wrong with the hub's certificate."""
    code = error.verify_code
    if code == _EXPIRED:
        return StepFailed(
            "certificate expired", f"the certificate of {host} has expired: renew it on the hub"
        )
    if code == _NOT_YET_VALID:
        return StepFailed(
            "certificate not valid yet",
            f"the certificate of {host} is not valid yet: correct this machine's clock",
        )
    if code in _WRONG_NAME:
        return StepFailed(
            "certificate is for another name",
            f"the certificate is not for {host}: use the certificate's name in agent.hub_url, or renew it",
        )
    if code in _UNKNOWN_AUTHORITY:
        return StepFailed(
            "unknown authority",
            f"the certificate of {host} is signed by an authority that this machine does not know: set "
            "agent.tls_ca_file to that authority's file",
        )
    return StepFailed(
        "certificate not accepted",
        f"the certificate of {host} is not accepted ({clean(error.verify_message or '', 120)}): renew it on the hub",
    )
