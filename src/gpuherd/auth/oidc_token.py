"""ID tokens: whether one was signed by the provider, for this hub, for this login, and now."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import BadSignatureError, ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, KeySet
from msgspec import Struct

from gpuherd.model.errors import Refused

__all__ = ["Expected", "UnknownKey", "read_keys", "verified_claims"]

# Signed with a key that the provider alone has. Never "none", and never HS256: with that, whoever knows the public key
# could sign.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
MAX_SKEW_SECONDS = 60
MAX_TOKEN_LENGTH = 65_536
MAX_KEYS = 100
MAX_KEY_MEMBER_LENGTH = 2_731
"""An RSA key of 16,384 bits. Providers use shorter ones, and longer ones are slow to check."""
PUBLIC_MEMBERS = ("kty", "use", "alg", "kid", "n", "e", "crv", "x", "y")
MAX_SUBJECT_LENGTH = 255


class UnknownKey(Refused):
    """The token was signed with a key that is not among those known, or no longer."""


class Expected(Struct, frozen=True, kw_only=True):
    """What must stand in a token."""

    issuer: str
    client_id: str
    nonce: str
    now: float
    """UTC epoch seconds."""


def read_keys(answer: Mapping[str, Any]) -> KeySet:
    """Take the public signing keys from a JWKS document; what cannot be used is left out."""
    keys = []
    listed = answer.get("keys")
    for entry in listed[:MAX_KEYS] if isinstance(listed, list) else ():
        is_for_signing = isinstance(entry, dict) and entry.get("use", "sig") == "sig"
        # Symmetric keys are no secret in a public document.
        if not is_for_signing or entry.get("kty") not in ("RSA", "EC"):
            continue
        # Never the private part: without its prime factors, the library searches for them, which may not end.
        public = {name: entry[name] for name in PUBLIC_MEMBERS if name in entry}
        if any(len(str(value)) > MAX_KEY_MEMBER_LENGTH for value in public.values()):
            continue
        try:
            keys.append(JWKRegistry.import_key(public))
        except (JoseError, ValueError, TypeError, LookupError):
            continue
    return KeySet(keys)


def verified_claims(token: str, keys: KeySet, expected: Expected) -> dict[str, Any]:
    """Give what a token says; ``UnknownKey`` if newer keys may help, ``Refused`` ``login_failed`` if nothing does."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise _refusal("is too long")
    try:
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            now=int(expected.now),
            leeway=MAX_SKEW_SECONDS,
            iss={"essential": True, "value": expected.issuer},
            aud={"essential": True, "value": expected.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(claims)
    except (InvalidKeyIdError, BadSignatureError) as error:
        raise UnknownKey("login_failed", "the provider's token is signed with an unknown key") from error
    except ExpiredTokenError as error:
        raise _refusal("has expired; are the clocks of hub and provider right?") from error
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise _refusal(f"is not valid ({type(error).__name__.removesuffix('Error')})") from error
    _check_rest(claims, expected)
    return claims


def _check_rest(claims: dict[str, Any], expected: Expected) -> None:
    """Check what the library leaves to us."""
    if not _is_same(claims.get("nonce"), expected.nonce):
        raise _refusal("belongs to another login")
    audience = claims["aud"]
    others: Iterable[object] = audience if isinstance(audience, list) else (audience,)
    authorized = claims.get("azp")
    if (authorized is not None or any(other != expected.client_id for other in others)) and not _is_same(
        authorized, expected.client_id
    ):
        raise _refusal("was issued for another client")
    subject = claims["sub"]
    if not (isinstance(subject, str) and 0 < len(subject) <= MAX_SUBJECT_LENGTH and subject.isprintable()):
        raise _refusal("names nobody")


def _is_same(told: object, wanted: str) -> bool:
    return isinstance(told, str) and hmac.compare_digest(
        told.encode("utf-8", "surrogatepass"), wanted.encode("utf-8")
    )


def _refusal(why: str) -> Refused:
    return Refused("login_failed", f"the provider's token {why}")
