"""Two OpenID providers: a real one in a process of its own, and one that says whatever a test wants it to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import importlib.util
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from support.authority import Certificate
from support.running import PATIENCE_SECONDS, free_port

__all__ = ["RealProvider", "ScriptedProvider", "need_provider", "running_provider", "scripted_provider"]


def need_provider() -> None:
    """Skip where no provider can be run, saying why."""
    for package in ("joserfc", "oidc_provider_mock"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


class RealProvider:
    """oidc-provider-mock: knows the protocol, asks for no password. A restart gives it new keys."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self.issuer = f"http://localhost:{self.port}"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "oidc_provider_mock",
                    "--port",
                    str(self.port),
                    "--require-registration",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.issuer}/jwks", timeout=2).close()  # noqa: S310 - our own http address
        except (urllib.error.URLError, OSError):
            return False
        return True

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def register(self, redirect_url: str) -> tuple[str, str]:
        """Make a client; gives its id and secret."""
        made = self._send("POST", "/oauth2/clients", {"redirect_uris": [redirect_url]})
        return made["client_id"], made["client_secret"]

    def put_user(self, subject: str, **claims: Any) -> None:
        """Say what is known of someone."""
        self._send("PUT", f"/users/{urllib.parse.quote(subject)}", claims)

    def _send(self, method: str, path: str, content: object) -> Any:
        request = urllib.request.Request(  # noqa: S310 - our own http address
            self.issuer + path,
            data=json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text.strip() else None

    async def log_in(self, url: str, subject: str, action: str = "authorize") -> str:
        """Do what a person does there: choose an account, or deny; gives where the browser is sent then."""
        form = {"sub": subject, "action": action}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=form, allow_redirects=False) as response,
        ):
            assert response.status == 302, await response.text()
            return response.headers["Location"]


@contextmanager
def running_provider(folder: Path) -> Iterator[RealProvider]:
    """Run the real one."""
    provider = RealProvider(folder / "provider.log")
    try:
        provider.start()
        yield provider
    finally:
        provider.stop()


class ScriptedProvider:
    """Answers as told. ``token`` makes the ID token from the nonce that was asked for."""

    def __init__(self, scheme: str = "http") -> None:
        self.port = free_port()
        self.issuer = f"{scheme}://127.0.0.1:{self.port}"
        self.metadata: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=lab",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
        }
        self.keys: list[dict[str, Any]] = []
        self.token: Callable[[str], str] = lambda nonce: nonce
        self.userinfo: dict[str, Any] = {}
        self.asked: list[str] = []
        """Paths, in the order of the requests."""
        self.forms: list[dict[str, str]] = []
        self.authorizations: list[str | None] = []
        self.is_frozen = False
        self.answer: Callable[[str], web.Response | None] = lambda _: None
        """Takes the place of what would be answered at a path."""
        self._codes: dict[str, dict[str, str]] = {}

    def approve(self, url: str) -> dict[str, str]:
        """Let the login at this address succeed; gives what the browser brings back."""
        question = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        code = f"code-{len(self._codes)}"
        self._codes[code] = question
        return {"code": code, "state": question["state"]}

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        while self.is_frozen:  # noqa: ASYNC110 - tests set it as they go
            await asyncio.sleep(0.05)
        given = self.answer(request.path)
        if given is not None:
            return given
        match request.path:
            case "/.well-known/openid-configuration":
                return web.json_response(self.metadata)
            case "/jwks":
                return web.json_response({"keys": self.keys})
            case "/token":
                return await self._tokens(request)
            case "/userinfo":
                self.authorizations.append(request.headers.get("Authorization"))
                return web.json_response(self.userinfo)
        return web.Response(status=404)

    async def _tokens(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        self.authorizations.append(request.headers.get("Authorization"))
        question = self._codes.pop(form.get("code", ""), None)
        made = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if question is None or question["code_challenge"] != made.decode().rstrip("="):
            return web.json_response({"error": "invalid_grant"}, status=400)
        if question["redirect_uri"] != form.get("redirect_uri"):
            return web.json_response({"error": "invalid_grant", "error_description": "redirect"}, status=400)
        return web.json_response(
            {"id_token": self.token(question["nonce"]), "access_token": "at-1", "token_type": "Bearer"}
        )


@contextlib.asynccontextmanager
async def scripted_provider(certificate: Certificate | None = None) -> AsyncIterator[ScriptedProvider]:
    """Run the scripted one in this event loop, with a certificate by HTTPS."""
    provider = ScriptedProvider("http" if certificate is None else "https")
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", provider._serve)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", provider.port, ssl_context=context).start()
    try:
        yield provider
    finally:
        provider.is_frozen = False
        await runner.cleanup()
