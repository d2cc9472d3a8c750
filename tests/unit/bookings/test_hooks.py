"""Hooks against real programs and real web servers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from gpuherd.bookings.hook_commands import CommandHook
from gpuherd.bookings.hook_events import Event
from gpuherd.bookings.hook_ledger import HookLedger
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.hooks import Hook, HookLine
from gpuherd.bookings.webhooks import WebHook, is_allowed, signature
from gpuherd.model.errors import Failed, Misconfigured
from support.running import PATIENCE_SECONDS

from .test_hook_events import NOW, booking

BODY = b'{"id":"booking-7-start"}'
LOOPBACK = ("127.0.0.0/8",)


def script(folder: Path, text: str) -> str:
    file = folder / "hook"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def run(hook: Hook) -> None:
    asyncio.run(hook.deliver("booking-7-start", "start", BODY))


# -- commands ------------------------------------------------------------------------------------------------------


def command(program: str, *arguments: str, deadline_seconds: float = 10.0) -> CommandHook:
    return CommandHook(
        HookSettings(on=("start",), command=(program, *arguments), deadline_seconds=deadline_seconds)
    )


def test_a_command_gets_the_event_and_little_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUHERD_SECRET", "not for hooks")
    program = script(
        tmp_path,
        f'cat > {tmp_path}/in; env > {tmp_path}/env; pwd > {tmp_path}/pwd; echo "$1" > {tmp_path}/arg',
    )
    run(command(program, "$(touch /tmp/never); `x`"))
    assert json.loads((tmp_path / "in").read_text()) == {"id": "booking-7-start"}
    assert (tmp_path / "arg").read_text() == "$(touch /tmp/never); `x`\n"
    assert (tmp_path / "pwd").read_text() == "/\n"
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names - {"PWD", "_", "OLDPWD", "SHLVL"} == {"PATH", "LANG", "GPUHERD_EVENT", "GPUHERD_EVENT_ID"}


@pytest.mark.parametrize(("text", "told"), [("exit 3", "status 3"), ("kill -9 $$", "signal 9")])
def test_a_command_that_fails(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(Failed, match=told):
        run(command(script(tmp_path, text)))


def test_a_command_that_does_not_read_what_it_is_told(tmp_path: Path) -> None:
    hook = command(script(tmp_path, "exec <&-; exit 0"))
    asyncio.run(hook.deliver("booking-7-start", "start", b"x" * 1_000_000))


def test_what_a_command_prints_is_logged_but_not_without_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    run(
        command(
            script(
                tmp_path, "printf 'hello \\033[31m\\n'; head -c 3000000 /dev/zero | tr '\\0' x; echo >&2 end"
            )
        )
    )
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("gpuherd")]
    assert lines[0] == "hook run hook for booking-7-start: hello \ufffd[31m"
    assert sum(map(len, lines)) < 10_000


def test_a_hanging_command_is_killed_with_all_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = script(tmp_path, f"trap '' TERM; sleep 600 & echo $! $$ > {pids}; wait; sleep 600")
    with pytest.raises(Failed, match=r"did not finish within 0\.5 s and was killed"):
        run(command(program, deadline_seconds=0.5))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(_is_alive(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_command_leaves_behind_does_not_hold_it_up(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run(command(script(tmp_path, f"sleep 600 & echo $! > {pids}"), deadline_seconds=PATIENCE_SECONDS))
    os.kill(int(pids.read_text()), 9)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="is not a program"):
        command(str(tmp_path / "missing"))
    with pytest.raises(Misconfigured, match="is not a program"):
        command(str(tmp_path))


# -- web addresses -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def server(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        sockets = site._server.sockets  # type: ignore[union-attr]
        yield sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


def webhook(url: str, tmp_path: Path, **more: Any) -> WebHook:
    settings = HookSettings(on=("start",), url=url, **{"networks": LOOPBACK, **more})
    settings.check()
    return WebHook(settings, wall=lambda: NOW)


def test_an_event_is_posted_and_signed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef0123456789abcdef\n")
    seen: list[tuple[web.Request, bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request, await request.read()))
        return web.Response(status=204)

    async def post() -> None:
        async with server(answer) as port:
            hook = webhook(
                f"http://127.0.0.1:{port}/in?key=hidden", tmp_path, secret_file=tmp_path / "secret"
            )
            assert hook.name == "POST to 127.0.0.1"
            await hook.deliver("booking-7-start", "start", BODY)

    asyncio.run(post())
    ((request, body),) = seen
    assert (request.method, request.path_qs, body) == ("POST", "/in?key=hidden", BODY)
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Gpuherd-Event-Id"] == "booking-7-start"
    expected = signature(b"0123456789abcdef0123456789abcdef", NOW, BODY)
    assert request.headers["Gpuherd-Signature"] == f"t={NOW},sha256={expected}"


@pytest.mark.parametrize(
    ("status", "told"), [(302, "a redirect"), (404, "answers 404"), (500, "answers 500")]
)
@pytest.mark.promise("no-redirect-followed")
def test_no_other_answer_will_do_and_redirects_are_not_followed(
    tmp_path: Path, status: int, told: str
) -> None:
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async def post() -> None:
        async with server(answer) as port:
            await webhook(f"http://127.0.0.1:{port}/in/hidden", tmp_path).deliver("x", "start", BODY)

    with pytest.raises(Failed, match=told) as caught:
        asyncio.run(post())
    assert paths == ["/in/hidden"]
    assert "hidden" not in str(caught.value)


def test_a_server_that_never_answers_costs_the_deadline_only(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def post() -> None:
        async with server(answer) as port:
            hook = webhook(f"http://127.0.0.1:{port}/", tmp_path, deadline_seconds=0.3)
            await hook.deliver("x", "start", BODY)

    with pytest.raises(Failed, match=r"did not respond within 0\.3 s"):
        asyncio.run(post())


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Failed, match=r"127\.0\.0\.1 cannot be reached") as caught:
        run(webhook(f"http://127.0.0.1:{port}/hidden", tmp_path))
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        *((address, False) for address in ("127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "192.168.1.1")),
        *(
            (address, False)
            for address in ("169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200")
        ),
        *((address, False) for address in ("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1")),
        *(
            (address, False)
            for address in ("2002:7f00:1::", "224.0.0.1", "ff02::1", "255.255.255.255", "nonsense")
        ),
    ],
)
def test_which_addresses_may_be_posted_to(address: str, expected: bool) -> None:
    assert is_allowed(address, []) is expected


def test_listed_networks_may_be_posted_to_and_no_others(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"127\.0\.0\.1 is not a public address"):
        run(webhook("http://127.0.0.1:9/", tmp_path, networks=("10.0.0.0/8",)))
    with pytest.raises(Failed, match="is not a public address"):
        run(webhook("http://[::1]:9/", tmp_path, networks=()))
    with pytest.raises(Failed, match="is not a public address"):
        run(webhook("http://localhost:9/", tmp_path, networks=()))


class TwoFaced(AbstractResolver):
    """A name server that gives a public address first and a private one later."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        address = self.answers.pop(0)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
        ]

    async def close(self) -> None: ...


def test_the_address_that_was_checked_is_the_one_that_is_used(tmp_path: Path) -> None:
    names = TwoFaced(["127.0.0.2", "127.0.0.1"])
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response()

    async def post() -> None:
        async with server(answer) as port:  # at 127.0.0.1
            settings = HookSettings(
                on=("start",), url=f"http://rebound.test:{port}/", networks=("127.0.0.2/32",)
            )
            await WebHook(settings, resolver=lambda: names).deliver("x", "start", BODY)

    with pytest.raises(Failed, match=r"rebound\.test cannot be reached"):
        asyncio.run(post())
    assert (seen, names.answers) == ([], ["127.0.0.1"])


def test_a_name_that_leads_inside_is_not_posted_to(tmp_path: Path) -> None:
    settings = HookSettings(on=("start",), url="http://rebound.test:9/")
    with pytest.raises(Failed, match=r"169\.254\.169\.254 is not a public address"):
        run(WebHook(settings, resolver=lambda: TwoFaced(["169.254.169.254"])))


@pytest.mark.parametrize(("content", "told"), [(None, "cannot be read"), (b"short", "fewer than 16")])
def test_a_bad_secret_stops_the_start(tmp_path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    with pytest.raises(Misconfigured, match=told):
        webhook("https://x.example/", tmp_path, secret_file=tmp_path / "secret")


# -- the ledger and the line ---------------------------------------------------------------------------------------


class Recorder:
    """Someone who is told, and fails as often as asked."""

    name = "recorder"

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.told: list[str] = []

    async def deliver(self, event_id: str, event: str, body: bytes) -> None:
        if self.failures:
            self.failures -= 1
            raise Failed("no")
        self.told.append(event_id)


class Hands:
    def __init__(self) -> None:
        self.now = float(NOW)

    def wall(self) -> float:
        return self.now


SETTINGS = HookSettings(on=("start",), command=("/bin/true",), attempts=3)


def line(hook: Hook, file: Path, hands: Hands, settings: HookSettings = SETTINGS) -> HookLine:
    return HookLine(hook, settings, HookLedger(file), wall=hands.wall, random=Random(1))  # noqa: S311


def event(number: int = 7) -> Event:
    return Event(kind="start", booking=booking(id=number), at=NOW)


async def put(queue: HookLine, *numbers: int) -> None:
    for number in numbers:
        queue.put(event(number), BODY)
    await queue._ledger.save(NOW)


def test_events_are_told_once_also_after_a_restart(tmp_path: Path) -> None:
    async def go() -> None:
        hands, hook = Hands(), Recorder()
        queue = line(hook, tmp_path / "hooks.json", hands)
        await put(queue, 7, 8)
        await queue.tell_next()
        assert hook.told == ["booking-7-start", "booking-8-start"]
        again = line(hook, tmp_path / "hooks.json", hands)
        assert not again.wants(event(7))
        assert again.wants(event(9))
        assert again.since == queue.since
        await again.tell_next()
        assert len(hook.told) == 2

    asyncio.run(go())
    assert stat.S_IMODE((tmp_path / "hooks.json").stat().st_mode) == 0o600


def test_what_was_written_down_is_told_by_the_next_hub(tmp_path: Path) -> None:
    async def go() -> None:
        hands, hook = Hands(), Recorder()
        await put(line(hook, tmp_path / "hooks.json", hands), 7)
        again = line(hook, tmp_path / "hooks.json", hands)
        assert not again.wants(event(7))
        await again.tell_next()
        assert hook.told == ["booking-7-start"]

    asyncio.run(go())


def test_failures_are_tried_again_later_and_then_given_up(tmp_path: Path) -> None:
    async def go() -> None:
        hands, hook = Hands(), Recorder(failures=5)
        queue = line(hook, tmp_path / "hooks.json", hands)
        await put(queue, 7)
        for attempt, pause in ((1, 0.0), (2, 6.5), (3, 25.5)):
            hands.now += pause
            with pytest.raises(
                Failed, match="failed after 3" if attempt == 3 else f"{3 - attempt} more attempts"
            ):
                await queue.tell_next()
            with pytest.raises(Failed):  # still to be seen, though nothing is due
                await queue.tell_next()
            assert hook.failures == 5 - attempt
        assert not queue.wants(event(7))
        hook.failures = 0
        await put(queue, 8)
        await queue.tell_next()
        assert hook.told == ["booking-8-start"]

    asyncio.run(go())


def test_a_hook_that_fails_does_not_keep_later_events_waiting(tmp_path: Path) -> None:
    async def go() -> None:
        hands, hook = Hands(), Recorder(failures=1)
        queue = line(hook, tmp_path / "hooks.json", hands)
        await put(queue, 7, 8)
        await queue.tell_next()
        assert hook.told == ["booking-8-start"]
        hands.now += 10
        await queue.tell_next()
        assert hook.told == ["booking-8-start", "booking-7-start"]

    asyncio.run(go())


def test_a_clock_that_was_years_ahead_once_does_not_silence_a_hook(tmp_path: Path) -> None:
    async def go() -> None:
        hands, hook = Hands(), Recorder(failures=1)
        hands.now += 3 * 365 * 86_400
        queue = line(hook, tmp_path / "hooks.json", hands)
        await put(queue, 7)
        with pytest.raises(Failed):
            await queue.tell_next()
        hands.now = float(NOW)
        for each in (queue, line(hook, tmp_path / "hooks.json", hands)):
            assert each.since <= NOW
        await queue.tell_next()
        assert hook.told == ["booking-7-start"]

    asyncio.run(go())


@pytest.mark.parametrize("content", [b'{"hooks": [', b'{"hooks": {"\xf2": {"since": 1}}}'])
def test_a_damaged_ledger_is_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "hooks.json").write_bytes(content)

    async def go() -> None:
        assert line(Recorder(), tmp_path / "hooks.json", Hands()).wants(event())

    asyncio.run(go())
    assert (tmp_path / "hooks.damaged").exists()


def test_a_ledger_that_cannot_be_written_is_told_and_events_still_arrive(tmp_path: Path) -> None:
    async def go() -> None:
        hook = Recorder()
        queue = line(hook, tmp_path / "missing" / "hooks.json", Hands())
        with pytest.raises(Failed, match="cannot be written"):
            await put(queue, 7)
        with pytest.raises(Failed, match="cannot be written"):
            await queue.tell_next()
        assert hook.told == ["booking-7-start"]

    asyncio.run(go())
