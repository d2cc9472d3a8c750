"""A real Consul: its catalogue and health endpoint, held questions, tokens, its end and return."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from gpuherd.discovery.consul import ConsulFinder, finder
from gpuherd.discovery.settings import ConsulSettings
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.targets import Target
from support.authority import Authority, needs_openssl
from support.consul import Consul
from support.running import PATIENCE_SECONDS, frozen


@pytest.fixture
def token_file(tmp_path: Path, consul: Consul) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{consul.token}\n")
    return file


def _names(targets: tuple[Target, ...]) -> list[str]:
    return [target.name for target in targets]


def test_the_catalogue_the_health_endpoint_tags_and_whole_addresses(consul: Consul, token_file: Path) -> None:
    passing = {"Status": "passing", "Name": "up", "ServiceID": "two"}
    critical = {"Status": "critical", "Name": "up", "ServiceID": "two"}
    one = {"ID": "two", "Service": "two", "Port": 7081, "Address": "127.0.2.2", "Tags": ["fast"]}
    consul.register("gpu02", "127.0.1.2", Service=one, Check=passing)
    consul.register(
        "gpu01", "127.0.1.1", Service={"ID": "two", "Service": "two", "Port": 7080}, Check=critical
    )

    async def find(**settings: object) -> tuple[Target, ...]:
        values = {"url": consul.url, "service": "two", "token_file": token_file, **settings}
        found = ConsulFinder(ConsulSettings(**values), base=Path())  # type: ignore[arg-type]
        try:
            return await found.find()
        finally:
            await found.close()

    async def run() -> None:
        everyone = await find(use_service_port=True)
        assert [(target.name, target.address, target.port) for target in everyone] == [
            ("gpu01", "127.0.1.1", 7080),
            ("gpu02", "127.0.2.2", 7081),
        ]
        assert _names(await find(only_healthy=True)) == ["gpu02"]
        assert _names(await find(tag_name="fast")) == ["gpu02"]
        assert _names(await find(service=None, url=f"{consul.url}/v1/catalog/service/two")) == [
            "gpu01",
            "gpu02",
        ]
        assert _names(await find(service=None, url=f"{consul.url}/v1/health/service/two?passing")) == [
            "gpu02"
        ]
        assert _names(await find(datacenter="dc1")) == ["gpu01", "gpu02"]
        with pytest.raises(Failed, match="No path to datacenter"):
            await find(datacenter="elsewhere")
        assert await find(service="absent") == ()

    asyncio.run(run())


def test_a_held_question_is_answered_at_the_change(consul: Consul, token_file: Path) -> None:
    consul.register("gpu01", "127.0.1.1", "held")
    settings = ConsulSettings(url=consul.url, service="held", token_file=token_file, every_seconds=600)

    async def run() -> None:
        found = ConsulFinder(settings, base=Path())
        assert _names(await found.find()) == ["gpu01"]
        waiting = asyncio.create_task(found.wait())
        done, _ = await asyncio.wait({waiting}, timeout=1)
        assert not done
        await asyncio.to_thread(consul.register, "gpu02", "127.0.1.2", "held")
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert _names(await found.find()) == ["gpu01", "gpu02"]
        await found.close()

    asyncio.run(run())


def test_a_question_is_held_no_longer_than_asked_for(consul: Consul, token_file: Path) -> None:
    consul.register("gpu01", "127.0.1.1", "still")
    settings = ConsulSettings(url=consul.url, service="still", token_file=token_file, every_seconds=2)

    async def run() -> None:
        found = ConsulFinder(settings, base=Path())
        await found.find()
        began = time.monotonic()
        await found.wait()
        assert time.monotonic() - began > 1.5
        assert _names(await found.find()) == ["gpu01"]
        await found.close()

    asyncio.run(run())


def test_a_token_without_rights_gets_an_empty_list_and_an_unknown_one_is_refused(
    consul: Consul, tmp_path: Path, token_file: Path
) -> None:
    consul.register("gpu01", "127.0.1.1", "secret")
    powerless = consul.call("PUT", "/v1/acl/token", {"Description": "may do nothing"})["SecretID"]
    settings = ConsulSettings(url=consul.url, service="secret", token_file=token_file)

    def renew(token: str) -> None:
        token_file.write_text(token)  # it is read anew for each question

    async def run() -> None:
        found = ConsulFinder(settings, base=tmp_path)
        assert _names(await found.find()) == ["gpu01"]
        renew(powerless)
        assert await found.find() == ()
        renew("99999999-0000-0000-0000-000000000000")
        with pytest.raises(Misconfigured, match=r"rejects the token \(403") as caught:
            await found.find()
        assert "99999999" not in str(caught.value)
        renew(str(consul.token))
        assert _names(await found.find()) == ["gpu01"]
        await found.close()

    asyncio.run(run())


def test_a_frozen_consul_fails_within_the_deadline_and_recovers(
    consul: Consul, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "ANSWER_SECONDS", 1.0)
    consul.register("gpu01", "127.0.1.1", "frozen")
    settings = ConsulSettings(url=consul.url, service="frozen", token_file=token_file, every_seconds=1)

    async def run() -> None:
        found = ConsulFinder(settings, base=Path())
        await found.find()
        with frozen(consul.process.pid):
            await found.wait()  # the held question fails too, without an exception
            with pytest.raises(Failed, match="no response within 1 s"):
                await found.find()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    assert _names(await found.find()) == ["gpu01"]
                    break
                except Failed:
                    await found.wait()
        await found.close()

    asyncio.run(run())


@needs_openssl
def test_consul_with_tls_a_certificate_file_and_a_token(
    consul: Consul, token_file: Path, authority: Authority, tmp_path: Path
) -> None:
    """Only a Consul with a certificate of ours gets the token; a file that is put right counts at the next question."""
    consul.register("tls1", "10.5.0.1", "tls-gpu")
    assert consul.tls_url is not None
    ca_file = tmp_path / "ca.pem"
    stranger, other_token = Authority(tmp_path / "stranger"), tmp_path / "other-token"

    def finder_at(url: str | None, **more: object) -> ConsulFinder:
        settings = {
            "url": url,
            "service": "tls-gpu",
            "token_file": token_file,
            "tls_ca_file": ca_file,
            **more,
        }
        return ConsulFinder(ConsulSettings(**settings), base=tmp_path)  # type: ignore[arg-type]

    async def scene() -> None:
        mending = finder_at(consul.tls_url)
        with pytest.raises(Misconfigured, match=r"the certificates cannot be read .* check tls_ca_file"):
            await mending.find()
        ca_file.write_text("no certificate")
        with pytest.raises(Misconfigured, match="the certificates cannot be read"):
            await mending.find()
        ca_file.write_bytes(stranger.file.read_bytes())
        with pytest.raises(
            Failed, match=r"no TLS connection \(.*unable to get local issuer.*\); check tls_ca_file"
        ):
            await mending.find()
        ca_file.write_bytes(authority.file.read_bytes())
        assert _names(await mending.find()) == ["tls1"]
        # A held question, too, and a new node within about a second.
        waiting = asyncio.create_task(mending.wait())
        await asyncio.sleep(0.1)
        consul.register("tls2", "10.5.0.2", "tls-gpu")
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert _names(await mending.find()) == ["tls1", "tls2"]
        await mending.close()

        wrong_name = finder_at(consul.tls_url.replace("127.0.0.1", "localhost") if consul.tls_url else None)
        with pytest.raises(Failed, match=r"no TLS connection \(Hostname mismatch"):
            await wrong_name.find()
        await wrong_name.close()
        unknown = finder_at(consul.tls_url, tls_ca_file=None)
        with pytest.raises(Failed, match="no TLS connection"):
            await unknown.find()
        await unknown.close()
        plain = finder_at(
            consul.tls_url.replace("https", "http") if consul.tls_url else None, tls_ca_file=None
        )
        with pytest.raises((Failed, Misconfigured)) as told:
            await plain.find()
        assert str(consul.token) not in str(told.value)
        await plain.close()
        other_token.write_text("99999999-8888-7777-6666-555555555555\n")
        refused = finder_at(consul.tls_url, token_file=other_token)
        with pytest.raises(Misconfigured, match="rejects the token"):
            await refused.find()
        await refused.close()

    asyncio.run(scene())
    with pytest.raises(Misconfigured, match=r"find\.tls_ca_file: cannot be used with http"):
        finder_at(consul.url)
