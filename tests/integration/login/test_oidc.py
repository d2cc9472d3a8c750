"""Logging in at OpenID providers: a real one, and one that misbehaves."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

pytest.importorskip("joserfc", reason="the extra gpuherd[oidc] is not installed")

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import RSAKey

from gpuherd.auth import oidc_provider
from gpuherd.auth.oidc import OidcWay
from gpuherd.auth.way_settings import OidcSettings
from gpuherd.auth.ways import VouchedFor
from gpuherd.model.errors import Failed, Misconfigured, Refused
from support.authority import Authority, needs_openssl
from support.oidc_provider import (
    RealProvider,
    ScriptedProvider,
    need_provider,
    running_provider,
    scripted_provider,
)
from support.running import PATIENCE_SECONDS, free_port

REDIRECT = "http://localhost:9/api/v1/login/oidc/callback"
KEY = RSAKey.generate_key(2048, {"kid": "one"})
NEW_KEY = RSAKey.generate_key(2048, {"kid": "two"})


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProvider]:
    need_provider()
    with running_provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


def secret_file(folder: Path, secret: str) -> Path:
    file = folder / "client-secret"
    file.write_text(secret)
    file.chmod(0o600)
    return file


def answer_in(url: str) -> dict[str, str]:
    assert url.startswith(REDIRECT)
    return dict(parse_qsl(urlsplit(url).query))


async def enter(way: OidcWay, real: RealProvider, subject: str) -> VouchedFor:
    started = await way.start(REDIRECT)
    back = await real.log_in(started.url, subject)
    return await way.finish(answer_in(back), handshake=started.handshake, redirect_url=REDIRECT)


# -- a real provider -------------------------------------------------------------------------------------------


def test_person_comes_back_with_what_the_provider_knows(real: RealProvider, tmp_path: Path) -> None:
    client_id, secret = real.register(REDIRECT)
    real.put_user(
        "17",
        preferred_username="alice",
        name="Alice Ash",
        groups=["gpu-users", "gpu-admins"],
        posix={"name": "aash"},
    )
    way = OidcWay(
        OidcSettings(
            issuer=real.issuer,
            client_id=client_id,
            client_secret_file=secret_file(tmp_path, secret),
            linux_name_claim="posix.name",
        )
    )

    vouched = asyncio.run(enter(way, real, "17"))
    assert vouched == VouchedFor(
        source="oidc",
        subject=f"{real.issuer} 17",
        name="alice",
        display_name="Alice Ash",
        groups=("gpu-admins", "gpu-users"),
        linux_names=("aash",),
    )


def test_code_works_once(real: RealProvider, tmp_path: Path) -> None:
    client_id, secret = real.register(REDIRECT)
    real.put_user("bob", preferred_username="bob")
    way = OidcWay(
        OidcSettings(
            issuer=real.issuer, client_id=client_id, client_secret_file=secret_file(tmp_path, secret)
        )
    )

    async def story() -> None:
        started = await way.start(REDIRECT)
        answer = answer_in(await real.log_in(started.url, "bob"))
        await way.finish(answer, handshake=started.handshake, redirect_url=REDIRECT)
        with pytest.raises(Refused) as refused:
            await way.finish(answer, handshake=started.handshake, redirect_url=REDIRECT)
        assert refused.value.code == "login_failed"

    asyncio.run(story())


def test_person_who_says_no_is_told_so(real: RealProvider, tmp_path: Path) -> None:
    client_id, secret = real.register(REDIRECT)
    way = OidcWay(
        OidcSettings(
            issuer=real.issuer, client_id=client_id, client_secret_file=secret_file(tmp_path, secret)
        )
    )

    async def story() -> None:
        started = await way.start(REDIRECT)
        back = await real.log_in(started.url, "bob", action="deny")
        # This provider leaves the state out of its no.
        answer = {"state": dict(parse_qsl(urlsplit(started.url).query))["state"], **answer_in(back)}
        with pytest.raises(Refused) as refused:
            await way.finish(answer, handshake=started.handshake, redirect_url=REDIRECT)
        assert refused.value.code == "login_denied"

    asyncio.run(story())


def test_wrong_client_secret_names_the_key(real: RealProvider, tmp_path: Path) -> None:
    client_id, _ = real.register(REDIRECT)
    real.put_user("bob", preferred_username="bob")
    way = OidcWay(
        OidcSettings(
            issuer=real.issuer, client_id=client_id, client_secret_file=secret_file(tmp_path, "not the one")
        )
    )

    with pytest.raises(Failed, match=r"check login\.oidc\.client_id and client_secret_file") as failed:
        asyncio.run(enter(way, real, "bob"))
    assert "not the one" not in str(failed.value)


def test_provider_that_restarts_with_new_keys_is_understood(tmp_path: Path) -> None:
    need_provider()
    with running_provider(tmp_path) as provider:

        def made() -> OidcSettings:
            client_id, secret = provider.register(REDIRECT)
            provider.put_user("bob", preferred_username="bob")
            return OidcSettings(
                issuer=provider.issuer, client_id=client_id, client_secret_file=secret_file(tmp_path, secret)
            )

        way = OidcWay(made())
        assert asyncio.run(enter(way, provider, "bob")).name == "bob"
        provider.stop()
        with pytest.raises(Failed, match="cannot be reached"):
            asyncio.run(OidcWay(way._settings).start(REDIRECT))
        provider.start()
        # The same way still has the old keys; its client is new, for this provider remembers nothing.
        way._settings = way._provider._settings = made()
        assert asyncio.run(enter(way, provider, "bob")).name == "bob"


# -- one that says what it wants -------------------------------------------------------------------------------


def signed(provider: ScriptedProvider, key: RSAKey = KEY, **claims: Any) -> Callable[[str], str]:
    def make(nonce: str) -> str:
        now = int(time.time())
        content = {
            "iss": provider.issuer,
            "aud": "hub",
            "sub": "17",
            "iat": now,
            "exp": now + 60,
            "nonce": nonce,
            "preferred_username": "alice",
            "groups": ["staff"],
            **claims,
        }
        content = {name: value for name, value in content.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": str(key.kid)}, content, key)

    return make


def played(story: Callable[[ScriptedProvider, OidcWay], Awaitable[Any]], **settings: Any) -> Any:
    """Run a story with a provider and a way to it."""

    async def run() -> Any:
        async with scripted_provider() as provider:
            provider.keys = [KEY.as_dict(private=False)]
            provider.token = signed(provider)
            return await story(
                provider, OidcWay(OidcSettings(**{"issuer": provider.issuer, "client_id": "hub", **settings}))
            )

    return asyncio.run(run())


async def whole_login(provider: ScriptedProvider, way: OidcWay) -> VouchedFor:
    started = await way.start(REDIRECT)
    return await way.finish(provider.approve(started.url), handshake=started.handshake, redirect_url=REDIRECT)


def test_what_is_asked_of_the_provider() -> None:
    async def story(_: ScriptedProvider, way: OidcWay) -> None:
        started, again = await way.start(REDIRECT), await way.start(REDIRECT)
        asked = dict(parse_qsl(urlsplit(started.url).query))

        assert asked.keys() == {
            "tenant",  # of the provider's own address
            "response_type",
            "client_id",
            "redirect_uri",
            "scope",
            "state",
            "nonce",
            "code_challenge",
            "code_challenge_method",
        }
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["scope"] == "openid profile email"
        secrets = {asked["state"], asked["nonce"], asked["code_challenge"], started.handshake}
        assert len(secrets) == 4
        assert not secrets & set(dict(parse_qsl(urlsplit(again.url).query)).values())
        assert started.handshake not in started.url

    played(story)


def test_public_client_sends_its_name_and_no_secret() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        assert (await whole_login(provider, way)).name == "alice"
        assert provider.forms[0]["client_id"] == "hub"
        assert "client_secret" not in provider.forms[0]
        assert provider.authorizations == [None]

    played(story)


@pytest.mark.parametrize("is_basic", [True, False])
def test_secret_goes_where_the_provider_wants_it(tmp_path: Path, is_basic: bool) -> None:
    secret = "a:b c/é%"

    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        if not is_basic:
            provider.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        await whole_login(provider, way)
        header = provider.authorizations[0]
        if is_basic:
            assert header is not None
            assert base64.b64decode(header.removeprefix("Basic ")) == b"hub:a%3Ab%20c%2F%C3%A9%25"
            assert "client_secret" not in provider.forms[0]
        else:
            assert header is None
            assert provider.forms[0]["client_secret"] == secret

    played(story, client_secret_file=secret_file(tmp_path, secret))


def test_userinfo_is_asked_for_what_the_token_lacks() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        assert (await whole_login(provider, way)).groups == ("staff",)
        assert "/userinfo" not in provider.asked
        provider.token = signed(provider, groups=None)
        provider.userinfo = {"sub": "17", "groups": ["late"], "preferred_username": "not-this"}
        vouched = await whole_login(provider, way)
        assert (vouched.groups, vouched.name) == (("late",), "alice")
        assert provider.authorizations[-1] == "Bearer at-1"
        provider.userinfo = {"sub": "18", "groups": ["someone else's"]}
        with pytest.raises(Refused):
            await whole_login(provider, way)

    played(story)


@pytest.mark.parametrize(("claim", "groups"), [("groups", ()), ("", None)])
def test_missing_groups_are_none_or_left_to_the_hub(claim: str, groups: tuple[str, ...] | None) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        provider.token = signed(provider, groups=None)
        provider.metadata.pop("userinfo_endpoint")
        assert (await whole_login(provider, way)).groups == groups

    played(story, groups_claim=claim)


@pytest.mark.parametrize(
    "change",
    [
        {"state": "x"},
        {"state": ""},
        {"state": None},
        {"iss": "https://evil.example.org"},
        {"code": ""},
        {"code": None},
        {"code": "x" * 10_000},
        {"error": "server_error"},
    ],
)
def test_answers_that_do_not_fit_never_reach_the_provider(change: dict[str, str | None]) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        started = await way.start(REDIRECT)
        answer = {**provider.approve(started.url), **change}
        with pytest.raises(Refused):
            await way.finish(
                {name: value for name, value in answer.items() if value is not None},
                handshake=started.handshake,
                redirect_url=REDIRECT,
            )
        assert "/token" not in provider.asked

    played(story)


@pytest.mark.parametrize("handshake", ["", "x", "x" * 43, "é" * 43])
def test_login_of_another_browser_is_refused(handshake: str) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        started = await way.start(REDIRECT)
        with pytest.raises(Refused) as refused:
            await way.finish(provider.approve(started.url), handshake=handshake, redirect_url=REDIRECT)
        assert refused.value.code == "login_expired"
        assert "/token" not in provider.asked

    played(story)


def test_code_of_another_login_is_worth_nothing() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        victim, thief = await way.start(REDIRECT), await way.start(REDIRECT)
        stolen = provider.approve(victim.url)["code"]
        own = provider.approve(thief.url)
        with pytest.raises(Refused) as refused:  # the verifier does not fit the challenge
            await way.finish({**own, "code": stolen}, handshake=thief.handshake, redirect_url=REDIRECT)
        assert refused.value.code == "login_failed"

    played(story)


def test_keys_are_asked_for_again_when_they_change_and_only_then() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        await whole_login(provider, way)
        await whole_login(provider, way)
        assert provider.asked.count("/jwks") == 1
        provider.keys = [NEW_KEY.as_dict(private=False)]
        provider.token = signed(provider, NEW_KEY)
        assert (await whole_login(provider, way)).name == "alice"
        assert provider.asked.count("/jwks") == 2
        provider.token = signed(provider, KEY)  # the old one no longer counts
        with pytest.raises(Refused):
            await whole_login(provider, way)
        assert provider.asked.count("/jwks") == 3

    played(story)


def test_forged_tokens_are_refused() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        stranger = RSAKey.generate_key(2048, {"kid": "one"})
        for claims in ({"aud": "x"}, {"iss": "x"}, {"nonce": "x"}, {"exp": 1}):
            provider.token = signed(provider, **claims)
            with pytest.raises(Refused):
                await whole_login(provider, way)
        provider.token = signed(provider, stranger)
        with pytest.raises(Refused):
            await whole_login(provider, way)
        provider.token = signed(provider)
        assert (await whole_login(provider, way)).name == "alice"

    played(story)


@pytest.mark.parametrize(
    ("claims", "settings", "complaint"),
    [
        ({"preferred_username": None}, {}, r"claim preferred_username is nothing.*login\.oidc\.name_claim"),
        ({"preferred_username": "Alice Ash"}, {}, r'is "Alice Ash", which is not a valid account name'),
        ({"preferred_username": ["alice"]}, {}, "which is not a valid account name"),
        ({"email": "a@example.org"}, {"name_claim": "email"}, "has not verified"),
        ({"email": "a@example.org", "email_verified": "true"}, {"name_claim": "email"}, "has not verified"),
        ({}, {"allowed_groups": ("admins",)}, "is not allowed to use this hub"),
    ],
)
def test_claims_that_will_not_do_say_why(
    claims: dict[str, Any], settings: dict[str, Any], complaint: str
) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        provider.token = signed(provider, **claims)
        provider.metadata.pop("userinfo_endpoint")
        with pytest.raises((Failed, Refused), match=complaint):
            await whole_login(provider, way)

    played(story, **settings)


def test_claims_may_lie_deeper_and_be_odd() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        more: dict[str, Any] = {"https://example.org/user": "al"}
        provider.token = signed(
            provider,
            realm_access={"roles": ["a", 7, None, "b\n", "", "a", "c" * 500]},
            name="Al\x1bice  ",
            uid="aash",
            **more,
        )
        vouched = await whole_login(provider, way)
        assert vouched.name == "al"
        assert vouched.groups == ("a",)
        assert vouched.linux_names == ("aash",)
        assert "\x1b" not in vouched.display_name

    played(
        story,
        groups_claim="realm_access.roles",
        name_claim="https://example.org/user",
        linux_name_claim="uid",
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"issuer": "https://sso.example.org"},
            r'says that its issuer is "https://sso\.example\.org".*login\.oidc\.issuer',
        ),
        ({"token_endpoint": "http://sso.example.org/token"}, "token_endpoint is not an https address"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri is not an https address"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint is not an https address"),
        (
            {"authorization_endpoint": "https://a\r\nSet-Cookie: x"},
            "authorization_endpoint is not an https address",
        ),
        ({"token_endpoint": None}, "sent invalid metadata"),
    ],
)
def test_provider_that_describes_itself_badly_is_not_used(changes: dict[str, Any], complaint: str) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        provider.metadata |= changes
        with pytest.raises(Failed, match=complaint):
            await way.start(REDIRECT)

    played(story)


@pytest.mark.parametrize(
    ("path", "response"),
    [
        ("/.well-known/openid-configuration", {"status": 500}),
        ("/.well-known/openid-configuration", {"status": 302, "headers": {"Location": "/elsewhere"}}),
        ("/.well-known/openid-configuration", {"text": "<html>"}),
        ("/.well-known/openid-configuration", {"text": "[1]"}),
        ("/.well-known/openid-configuration", {"body": b"x" * 2_000_000}),
        ("/jwks", {"status": 503}),
        ("/jwks", {"text": "nothing"}),
        ("/jwks", {"text": '{"keys":' + "[" * 100_000}),
        ("/token", {"status": 500}),
        ("/token", {"status": 302, "headers": {"Location": "https://evil.example.org"}}),
        ("/token", {"text": "{}"}),
        ("/token", {"text": '{"id_token": 7}'}),
        ("/token", {"text": "["}),
    ],
)
def test_provider_that_answers_rubbish_fails_clearly(path: str, response: dict[str, Any]) -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        provider.answer = lambda asked: web.Response(**response) if asked == path else None
        with pytest.raises((Failed, Refused)):
            await whole_login(provider, way)

    played(story)


def test_frozen_provider_is_given_up_and_not_asked_by_everyone() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        provider.is_frozen = True
        async with asyncio.timeout(PATIENCE_SECONDS):  # it stays frozen meanwhile
            tries = await asyncio.gather(*(way.start(REDIRECT) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(failure, Failed) for failure in tries), tries
        assert len(provider.asked) <= 2
        provider.is_frozen = False

    played(story, deadline_seconds=1)


def test_metadata_are_kept_through_an_outage_and_renewed() -> None:
    async def story(provider: ScriptedProvider, way: OidcWay) -> None:
        now = 1000.0
        way._provider._monotonic = lambda: now
        await way.start(REDIRECT)
        await way.start(REDIRECT)
        assert provider.asked.count("/.well-known/openid-configuration") == 1
        now += oidc_provider.FRESH_SECONDS + 1
        provider.answer = lambda _: web.Response(status=503)
        assert "/authorize" in (await way.start(REDIRECT)).url
        now += oidc_provider.PAUSE_SECONDS + 1
        provider.answer = lambda _: None
        provider.metadata["authorization_endpoint"] = f"{provider.issuer}/moved"
        assert "/moved" in (await way.start(REDIRECT)).url
        now += oidc_provider.KEPT_SECONDS + 1
        provider.answer = lambda _: web.Response(status=503)
        with pytest.raises(Failed):
            await way.start(REDIRECT)

    played(story)


@needs_openssl
def test_certificate_of_the_provider_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")

    async def run() -> None:
        async with scripted_provider(authority.issue("IP:127.0.0.1")) as provider:
            provider.keys = [KEY.as_dict(private=False)]
            provider.token = signed(provider)
            known = OidcSettings(issuer=provider.issuer, client_id="hub", tls_ca_file=authority.file)
            assert (await whole_login(provider, OidcWay(known))).name == "alice"
            unknown = OidcSettings(issuer=provider.issuer, client_id="hub")
            with pytest.raises(Failed, match=r"no TLS connection.*check login\.oidc\.tls_ca_file"):
                await OidcWay(unknown).start(REDIRECT)

    asyncio.run(run())


def test_provider_that_is_down_is_a_failure() -> None:
    way = OidcWay(OidcSettings(issuer=f"http://127.0.0.1:{free_port()}", client_id="hub"))

    with pytest.raises(Failed, match=r"cannot be reached.*is the provider up"):
        asyncio.run(way.start(REDIRECT))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"issuer": "http://sso.example.org"}, r"login\.oidc\.issuer: .* not an https address"),
        ({"issuer": "sso.example.org"}, r"login\.oidc\.issuer"),
        ({"issuer": "https://me:pw@sso.example.org"}, r"login\.oidc\.issuer"),
        ({"issuer": "https://sso.example.org/?x"}, r"login\.oidc\.issuer"),
        ({"issuer": "https://[broken"}, r"login\.oidc\.issuer"),
        (
            {"redirect_url": "http://gpus.example.org/api/v1/login/oidc/callback"},
            r"login\.oidc\.redirect_url",
        ),
        ({"redirect_url": "https://gpus.example.org/"}, r"login\.oidc\.redirect_url"),
        ({"scopes": ("two words",)}, r"login\.oidc\.scopes"),
        ({"tls_ca_file": Path("/nowhere/ca.pem")}, r"login\.oidc\.tls_ca_file"),
        ({"client_secret_file": Path("/nowhere/secret")}, r"login\.oidc\.client_secret_file: cannot read"),
    ],
)
def test_bad_settings_stop_the_start(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        OidcWay(OidcSettings(**{"issuer": "https://sso.example.org", "client_id": "hub", **settings}))
