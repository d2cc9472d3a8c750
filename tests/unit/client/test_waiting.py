"""How long it takes, as far as anyone can tell, and how it is waited for."""

from __future__ import annotations

import io
from typing import Any

import pytest
from msgspec import structs

from gpuherd.cli.progress import Progress
from gpuherd.client import HubRefused, HubSilent
from gpuherd.client.booked_times import BookedTimes
from gpuherd.client.choosing import Search
from gpuherd.client.errors import NOT_A_HUB, HubOutdated
from gpuherd.client.herd_views import Availability, Gpu, GpuFacts, Herd, Node, UsingProcess
from gpuherd.client.look import Look, look_at, node_called, warnings_of
from gpuherd.client.views import BookedTime, Device, HubError, Timeline
from gpuherd.client.waiting import Situation, WaitedInVain, situation_of, wait_for
from gpuherd.client.wanted import Wish
from gpuherd.model.errors import Failed, Refused

NOW = 1_794_820_800.0
HOUR = 3600


def gpu(index: int, state: str, user: str | None = None, since: float = NOW - HOUR) -> Gpu:
    return Gpu(
        node_id="n",
        facts=GpuFacts(uuid=f"GPU-{index}", index=index, name="A100"),
        availability=Availability(state=state, since=since),
        processes=() if user is None else (UsingProcess(pid=1, user=user),),
    )


def situation(
    *gpus: Gpu, wish: Wish | None = None, booked: dict[int, tuple[float, float]] | None = None
) -> Situation:
    """``booked``: from when to when others have a device, in hours from now."""
    timeline = Timeline(
        devices=tuple(Device(node_id="n", node_name="n", uuid=one.uuid) for one in gpus),
        bookings=tuple(
            BookedTime(
                id=index + 1,
                holder="bob",
                starts_at=int(NOW + begin * HOUR),
                ends_at=int(NOW + end * HOUR),
                devices=(index,),
            )
            for index, (begin, end) in (booked or {}).items()
        ),
    )
    herd = Herd(time=NOW, nodes=(Node(id="n", name="n", state="live", age_seconds=1.0, devices=gpus),))
    look = Look(herd=herd, booked=BookedTimes(timeline), now=NOW)
    search = Search(wish=wish or Wish())
    return situation_of(look, search.sort(herd, look.booked, NOW), search)


def hours(found: Situation) -> float | None:
    return None if found.free_at is None else (found.free_at - NOW) / HOUR


def test_what_is_used_without_a_booking_ends_nobody_knows_when() -> None:
    found = situation(gpu(0, "busy", "cleo"), gpu(1, "held", "dan"))
    assert (found.able_count, found.known_count, hours(found)) == (0, 2, None)
    assert [(one.place, one.who, one.state) for one in found.likely] == [
        ("n/1", "dan", "held"),
        ("n/0", "cleo", "busy"),
    ]


def test_bookings_tell_when_it_is_free_for_long_enough() -> None:
    busy = gpu(0, "busy", "bob")
    assert hours(situation(busy, booked={0: (-1, 3)})) == 3
    assert hours(situation(gpu(0, "booked"), booked={0: (-1, 3)})) == 3
    assert hours(situation(gpu(0, "free"), booked={0: (1, 3)})) == 3
    # Two hours between two bookings are too short.
    assert hours(situation(gpu(0, "free"), gpu(1, "free"), booked={0: (1, 3), 1: (2, 5)})) == 3
    both = Wish(count=2)
    assert hours(situation(gpu(0, "free"), gpu(1, "free"), wish=both, booked={0: (1, 3), 1: (2, 5)})) == 5
    assert hours(situation(gpu(0, "busy", "cleo"), gpu(1, "free"), wish=both)) is None
    assert hours(situation(gpu(0, "fault"), booked={0: (-1, 3)})) is None


def test_a_log_gets_few_lines_and_nothing_that_acts_on_a_terminal() -> None:
    clock = [0.0]
    stream = io.StringIO()
    progress = Progress("1 GPU", stream=stream, monotonic=lambda: clock[0])
    held = situation(gpu(0, "held", "evil\x1b[31m"))
    for _ in range(3):
        progress.tell(held, NOW)
    progress.tell(situation(gpu(0, "busy", "cleo")), NOW)
    assert stream.getvalue() == (
        "gpuherd: waiting for 1 GPU: 0 of 1 available · n/0 evil\ufffd[31m, held idle for 1 h · no end time known\n"
    )
    clock[0] = 61
    progress.tell(situation(gpu(0, "busy", "cleo")), NOW)
    progress.tell_trouble(HubSilent("it is away"))
    progress.tell_trouble(HubSilent("it is away"))
    progress.tell_trouble(None)
    progress.end()
    assert stream.getvalue().splitlines()[1:] == [
        "gpuherd: waiting for 1 GPU: 0 of 1 available · n/0 cleo, busy for 1 h · no end time known",
        "gpuherd: waiting for 1 GPU: it is away; still waiting",
        "gpuherd: waiting for 1 GPU: the hub is back",
    ]


def test_a_terminal_has_one_line_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    progress = Progress("1 GPU", stream=stream)
    progress.tell(situation(gpu(0, "busy", "cleo")), NOW)
    progress.end()
    progress.end()
    assert stream.getvalue() == "\r\x1b[Kwaiting for 1 GPU: 0 of 1 av…\r\x1b[K"


# -- waiting -------------------------------------------------------------------------------------------------------


class Waiting:
    """A clock that sleep moves, and attempts that end one after the other."""

    def __init__(self, *attempts: Any) -> None:
        self.now, self.pauses, self.attempts = 0.0, [], list(attempts)  # type: ignore[var-annotated]
        self.troubles: list[str | None] = []

    def attempt(self) -> str | None:
        given = self.attempts.pop(0) if self.attempts else None
        if isinstance(given, Exception):
            raise given
        assert given is None or isinstance(given, str)
        return given

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def wait(self, **options: Any) -> str:
        return wait_for(
            self.attempt,
            sleep=self.sleep,
            monotonic=lambda: self.now,
            uniform=lambda low, high: (low + high) / 2,
            on_trouble=lambda error: self.troubles.append(None if error is None else str(error)),
            **options,
        )


def refusal(status: int, code: str = "some") -> HubRefused:
    return HubRefused(status, HubError(code=code, message="no"))


def test_it_is_asked_ever_more_seldom_but_never_seldom() -> None:
    waiting = Waiting(*[None] * 30, "found")
    assert waiting.wait() == "found"
    assert waiting.pauses[0] == pytest.approx(4)
    assert waiting.pauses == sorted(waiting.pauses)
    assert waiting.pauses[-1] == pytest.approx(15)


def test_a_hub_that_is_away_is_waited_for() -> None:
    away = (
        HubSilent("away"),
        refusal(503),
        refusal(429),
        refusal(408),
        refusal(404, NOT_A_HUB),
        Failed("old"),
    )
    waiting = Waiting(None, *away, None, "found")
    assert waiting.wait() == "found"
    assert waiting.troubles == ["away", "no", "no", "no", "no", "old", None]


@pytest.mark.parametrize(
    "error",
    [
        refusal(401),
        refusal(403, NOT_A_HUB),
        refusal(422),
        HubOutdated("old hub"),
        Refused("unknown_node", "no"),
    ],
)
def test_what_is_refused_for_good_is_not_tried_again(error: Exception) -> None:
    waiting = Waiting(None, error, "found")
    with pytest.raises(type(error)):
        waiting.wait()


def test_an_address_where_no_hub_has_answered_yet_is_told_at_once() -> None:
    waiting = Waiting(HubSilent("away"), refusal(404, NOT_A_HUB), "found")
    with pytest.raises(HubRefused):
        waiting.wait()
    assert waiting.troubles == ["away"]


def test_waiting_ends_in_time_also_while_the_hub_is_away() -> None:
    for attempts in ([], [HubSilent("away")] * 100):
        waiting = Waiting(*attempts)
        with pytest.raises(WaitedInVain):
            waiting.wait(timeout_seconds=100)
        assert waiting.now == pytest.approx(100)


# -- looking -------------------------------------------------------------------------------------------------------


class TalkingHub:
    """What a hub tells."""

    def __init__(self, herd: Herd, timeline: Timeline) -> None:
        self._herd, self._timeline = herd, timeline
        self.line = self
        self.url = "http://hub"
        self.asked: list[Any] = []

    def herd(self, *, node: str | None = None) -> Herd:
        self.asked.append(node)
        nodes = [each for each in self._herd.nodes if node is None or each.name.startswith(node)]
        return structs.replace(self._herd, nodes=tuple(nodes))

    def timeline(self, since: int, until: int, *, node: list[str] | None) -> Timeline:
        assert (since, until) == (int(self._herd.time), int(self._herd.time) + HOUR)
        self.asked.append(node)
        return self._timeline


def test_a_hub_whose_clockwork_stands_still_is_not_believed() -> None:
    def look(**timeline: Any) -> Look:
        hub: Any = TalkingHub(Herd(time=NOW), Timeline(**timeline))
        return look_at(hub, ahead_seconds=HOUR, max_age_seconds=60)

    assert look(time=NOW + 5).now == NOW + 5
    assert look().now == NOW
    with pytest.raises(Failed, match="its data about the GPUs is 61 s old"):
        look(time=NOW + 61)
    with pytest.raises(Failed, match="61 s old"):
        look(time=NOW - 61)
    with pytest.raises(Failed, match="cannot read its bookings right now"):
        look(time=NOW, is_current=False)


def test_only_the_node_that_matters_is_asked_for() -> None:
    herd = Herd(time=NOW, nodes=tuple(Node(id=f"id-{name}", name=name) for name in ("gpu1", "gpu2")))

    def asked(node: str | None, herd: Herd = herd) -> list[Any]:
        hub: Any = TalkingHub(herd, Timeline(time=NOW))
        look_at(hub, ahead_seconds=HOUR, max_age_seconds=60, node=node)
        asked: list[Any] = hub.asked
        return asked

    assert asked("gpu2") == ["gpu2", ["id-gpu2"]]
    assert asked(None) == [None, None]
    assert asked("cpu") == ["cpu", None, ["id-gpu1", "id-gpu2"]], "to say which there are"
    large = Herd(time=NOW, nodes=tuple(Node(id=f"{number}", name=f"gpu{number}") for number in range(50)))
    assert asked("gpu", large) == ["gpu", None], "as an older hub answers"


def test_which_node_is_meant() -> None:
    def node(node_id: str, name: str, hostname: str | None = None) -> Node:
        made = Node(id=node_id, name=name)
        host: Any = None if hostname is None else {"hostname": hostname}
        from gpuherd.client.herd_views import HostFacts

        return made if host is None else structs.replace(made, host=HostFacts(**host))

    herd = Herd(
        time=NOW,
        nodes=(
            node("gpu07", "Big One", "gpu07.lab.example.org"),
            node("a", "gpu08.lab.example.org"),
            node("b", "gpu08.other.example.org"),
            node("c", "see", "localhost"),
            node("10.0.0.5", "10.0.0.5"),
            node("gpu01.lab-a", "gpu01.lab-a"),
            node("gpu02", "gpu02", "gpu02.lab-a"),
        ),
    )

    def called(name: str, **how: Any) -> str:
        return node_called(herd, name, **how).id

    assert (
        called("gpu07")
        == called("GPU07.lab.example.org")
        == called("big one")
        == called("gpu07.x")
        == "gpu07"
    )
    assert called("gpu08.lab.example.org", is_this_host=True) == "a"
    assert called("gpu01") == called("gpu01", is_this_host=True) == "gpu01.lab-a"
    assert called("gpu02.lab-a", is_this_host=True) == called("gpu02", is_this_host=True) == "gpu02"
    for other in ("gpu01.lab-b", "gpu02.lab-b"):
        with pytest.raises(Refused, match="has no node called gpu0"):
            called(other, is_this_host=True)
    assert called("10.0.0.5") == "10.0.0.5"
    for other in ("10.0.0.7", "10", "gpu01.lab-b", "fe80::5"):
        with pytest.raises(Refused, match="there is no node"):
            called(other)
    with pytest.raises(
        Refused,
        match=r"gpu08 matches several nodes: gpu08.lab.example.org, gpu08.other.example.org; choose one",
    ):
        called("gpu08")
    with pytest.raises(Refused, match=r"has no node called gpu09, which is the name of this machine"):
        called("gpu09", is_this_host=True)
    with pytest.raises(Refused, match='there is no node "gpu09"; there are Big One, '):
        called("gpu09")
    for nameless in ("localhost", "localhost.localdomain", ""):
        with pytest.raises(Refused, match="no usable host name"):
            called(nameless, is_this_host=True)
    with pytest.raises(Refused, match="there is no node"):
        called("localhost")


def test_notices_that_may_be_why() -> None:
    from gpuherd.client.herd_views import Notice

    herd = Herd(
        time=NOW,
        notices=(Notice(code="open_door", message="a"), Notice(code="watch_failed", message="b\x1b")),
    )
    assert warnings_of(herd) == ["b\ufffd"]
