"""Forged, stale and misdirected ID tokens."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("joserfc", reason="the extra gpuherd[oidc] is not installed")

from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from gpuherd.auth.oidc_token import Expected, UnknownKey, read_keys, verified_claims
from gpuherd.model.errors import Refused

NOW = 1_700_000_000
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "one"})
EXPECTED = Expected(issuer="https://sso.example.org", client_id="hub", nonce="n-1", now=NOW)
CLAIMS: dict[str, Any] = {
    "iss": "https://sso.example.org",
    "aud": "hub",
    "sub": "alice",
    "nonce": "n-1",
    "iat": NOW,
    "exp": NOW + 300,
}


def number(bits: int) -> str:
    """Write a number of this length as keys have them."""
    content = (2**bits - 1).to_bytes((bits + 7) // 8, "big")
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def public(*keys: RSAKey | ECKey) -> KeySet:
    return read_keys({"keys": [key.as_dict(private=False) for key in keys]})


def signed(
    key: Any = KEY, algorithm: str = "RS256", header: dict[str, Any] | None = None, **claims: Any
) -> str:
    all_claims = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(header or {"alg": algorithm, "kid": "one"}, all_claims, key, algorithms=[algorithm])


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def refused(token: str, keys: KeySet | None = None) -> str:
    with pytest.raises(Refused) as refusal:
        verified_claims(token, keys or public(KEY), EXPECTED)
    assert refusal.value.code == "login_failed"
    return str(refusal.value)


def test_good_token_is_read() -> None:
    assert verified_claims(signed(groups=["a"]), public(KEY), EXPECTED)["groups"] == ["a"]


@pytest.mark.parametrize("algorithm", ["ES256", "PS256"])
def test_other_signatures_with_a_private_key_are_good(algorithm: str) -> None:
    key: Any = ECKey.generate_key("P-256", {"kid": "one"}) if algorithm == "ES256" else KEY

    assert verified_claims(signed(key, algorithm), public(key), EXPECTED)["sub"] == "alice"


def test_token_without_a_key_id_is_tried_with_the_only_key() -> None:
    assert verified_claims(signed(header={"alg": "RS256"}), public(KEY), EXPECTED)["sub"] == "alice"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", ""])
def test_unsigned_token_is_refused(algorithm: str) -> None:
    refused(f"{part({'alg': algorithm, 'kid': 'one'})}.{part(CLAIMS)}.")


@pytest.mark.parametrize("shape", ["pem", "der", "n"])
def test_token_signed_with_the_public_key_as_a_password_is_refused(shape: str) -> None:
    secrets = {
        "pem": KEY.as_pem(private=False),
        "der": KEY.as_der(private=False),
        "n": str(KEY.as_dict(private=False)["n"]).encode(),
    }
    forged = jws.serialize_compact(
        {"alg": "HS256", "kid": "one"},
        json.dumps(CLAIMS),
        OctKey.import_key(base64.urlsafe_b64encode(secrets[shape]).decode()),
        algorithms=["HS256"],
    )
    refused(forged)


def test_symmetric_key_in_the_public_document_is_no_key() -> None:
    key = OctKey.generate_key(256, {"kid": "one"})
    keys = read_keys({"keys": [key.as_dict(private=True)]})

    assert not keys
    refused(signed(key, "HS256"), keys)


def test_private_part_of_a_key_is_not_looked_at() -> None:
    """A provider should not send it. Without prime factors, the library would search for them."""
    (key,) = read_keys({"keys": [KEY.as_dict(private=True)]})

    assert not key.is_private


def test_key_of_absurd_length_is_left_out() -> None:
    entry = {"kty": "RSA", "e": "AQAB", "kid": "one"}

    assert len(read_keys({"keys": [entry | {"n": number(16_384)}]}).keys) == 1
    assert not read_keys({"keys": [entry | {"n": number(16_400)}]})


def test_key_that_the_token_brings_along_is_no_key() -> None:
    own = OTHER.as_dict(private=False)
    refused(signed(OTHER, header={"alg": "RS256", "jwk": own}))
    refused(signed(OTHER, header={"alg": "RS256", "kid": "one", "jku": "https://evil.example/jwks"}))


def test_token_of_another_key_asks_for_newer_keys() -> None:
    with pytest.raises(UnknownKey):
        verified_claims(signed(OTHER), public(KEY), EXPECTED)
    with pytest.raises(UnknownKey):
        verified_claims(signed(header={"alg": "RS256", "kid": "two"}), public(KEY, KEY), EXPECTED)


def test_changed_claims_are_refused() -> None:
    header, _, signature = signed().split(".")
    refused(f"{header}.{part({**CLAIMS, 'sub': 'root'})}.{signature}")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example.org"},
        {"iss": "https://sso.example.org/"},
        {"iss": None},
        {"iss": ["https://sso.example.org"]},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"aud": []},
        {"aud": ["hub", "another"]},  # for whom then? azp must say
        {"aud": ["hub", "another"], "azp": "another"},
        {"azp": "another"},
        {"azp": 1},
        {"nonce": "n-2"},
        {"nonce": None},
        {"nonce": ["n-1"]},
        {"nonce": ""},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": True},
        {"sub": ["alice"]},
        {"sub": {"alice": 1}},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
        {"exp": NOW - 61},
        {"exp": None},
        {"exp": "never"},
        {"exp": True},
        {"iat": NOW + 120},
        {"iat": None},
        {"nbf": NOW + 120},
    ],
)
def test_claims_that_do_not_fit_are_refused(claims: dict[str, Any]) -> None:
    refused(signed(**claims))


@pytest.mark.parametrize("subject", [7, True, ["alice"], {"alice": 1}])
def test_a_subject_that_is_no_text_is_refused_even_if_the_library_takes_it(
    subject: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwt.JWTClaimsRegistry, "validate", lambda *_: None)
    assert "names nobody" in refused(signed(sub=subject))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["hub"]},
        {"aud": ["hub", "another"], "azp": "hub"},
        {"azp": "hub"},
        {"exp": NOW - 59},
        {"iat": NOW + 59},
        {"nbf": NOW + 59},
    ],
)
def test_claims_that_fit_or_nearly_do(claims: dict[str, Any]) -> None:
    assert verified_claims(signed(**claims), public(KEY), EXPECTED)["sub"] == "alice"


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "x" * 70_000,
        f"{part({'alg': 'RS256'})}.{part([1])}.",
        "\ud800.a.b",
        "é.é.é",
    ],
)
def test_rubbish_is_refused(token: str) -> None:
    refused(token)


def test_deep_nesting_is_refused() -> None:
    deep = base64.urlsafe_b64encode(b'{"alg":"RS256","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}").decode()

    refused(f"{deep}.{part(CLAIMS)}.AA")


@given(
    token=st.text(max_size=200)
    | st.from_regex(r"[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}")
)
def test_any_text_is_refused_and_nothing_else(token: str) -> None:
    refused(token)


@given(
    claims=st.dictionaries(
        st.sampled_from(["iss", "aud", "sub", "exp", "iat", "nbf", "nonce", "azp", "jti"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
        min_size=1,
    )
)
def test_signed_claims_of_any_kind_are_read_or_refused(claims: dict[str, Any]) -> None:
    token = jws.serialize_compact({"alg": "RS256", "kid": "one"}, json.dumps({**CLAIMS, **claims}), KEY)
    try:
        told = verified_claims(token, public(KEY), EXPECTED)
    except Refused:
        return
    assert (told["iss"], told["nonce"]) == (EXPECTED.issuer, EXPECTED.nonce)
    assert told["exp"] > NOW - 60


def test_expiry_speaks_of_clocks() -> None:
    assert "clocks" in refused(signed(exp=NOW - 1000))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"keys": None},
        {"keys": "x"},
        {"keys": [1, None, "x", {}]},
        {"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]},
        {"keys": [{"kty": ["RSA"]}]},
        {"keys": [{"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}]},
    ],
)
def test_keys_that_are_none_are_left_out(document: dict[str, Any]) -> None:
    assert not read_keys(document)


def test_keys_for_encryption_are_left_out() -> None:
    entry = {**KEY.as_dict(private=False), "use": "enc"}

    assert not read_keys({"keys": [entry]})
