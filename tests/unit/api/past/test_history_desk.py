"""Series: gaps are gaps, bounds hold, and hosts show the public no more than the live view does."""

from __future__ import annotations

import asyncio
import csv
import io

import pytest
from msgspec import structs

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import (
    DevicesQuestion,
    HerdQuestion,
    HostQuestion,
    UserQuestion,
    Wanted,
)
from gpuherd.api.past.history_desk import MAX_NUMBERS, HistoryDesk
from gpuherd.history.batch import DEVICE_METRICS, SeriesKey, SessionKey
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import HerdSeries, SeriesView, UserSeries
from support.past import Row
from support.reported_past import NOW, VIEWERS, ReportedPast, Slot, random_slots, read

BUSY, FREE = DEVICE_STATES.index("busy"), DEVICE_STATES.index("free")
BEGIN = NOW - 3600.0
HOUR_AGO = Wanted(since=str(int(BEGIN)), until=str(int(NOW)))
DEVICE = DevicesQuestion(
    span=HOUR_AGO, devices=("n1:GPU-n1-0",), metrics=("utilization_gpu", "power_watts"), points=60
)


def rows() -> list[Row]:
    """An hour of a GPU: busy, a gap of ten minutes, free; and of its host."""
    found: list[Row] = []
    for second in range(0, 3600, 10):
        if not 1200 <= second < 1800:
            is_busy = second < 1200
            numbers = {"utilization_gpu": 0.9 if is_busy else 0.0, "power_watts": 300.0 if is_busy else 60.0}
            key = SeriesKey("n1", "GPU-n1-0", "A100 80GB")
            found.append((key, BEGIN + second, numbers, BUSY if is_busy else FREE))
            found.append((SeriesKey("n1"), BEGIN + second, {"cpu_ratio": 0.25, "uptime_seconds": 99.0}, 255))
    return found


def watched(start: float, end: float, every: int = 10) -> list[Row]:
    """A GPU of which a sample comes every few seconds."""
    key = SeriesKey("n1", "GPU-n1-0", "A100 80GB")
    return [(key, float(at), {"utilization_gpu": 0.5}, BUSY) for at in range(int(start), int(end) + 1, every)]


def used(slot: float, gpu_seconds: float) -> list[Slot]:
    """Ada on a GPU for some of a quarter of an hour."""
    key = SessionKey("n1", "GPU-n1-0", "A100 80GB", "ada", None, None, NOW - 7200)
    return [Slot(key, int(slot), (gpu_seconds, gpu_seconds, *[0.0] * 5))]


def devices(past: ReportedPast, who: str = "public", question: DevicesQuestion = DEVICE) -> SeriesView:
    view: SeriesView = read(asyncio.run(past.history.devices(VIEWERS[who], question)), SeriesView)
    return view


def test_gaps_are_gaps_and_states_are_told(past: ReportedPast) -> None:
    past.keep(rows=rows())
    view = devices(past)
    assert view.step_seconds == 60.0
    (subject,) = view.subjects
    told = dict(zip(view.times, subject.metrics["utilization_gpu"].mean, strict=True))
    for at, value in told.items():
        second = at - BEGIN
        wanted = 0.9 if second < 1200 else None if second < 1800 else 0.0
        assert value == (None if wanted is None else pytest.approx(wanted, abs=1e-3)), second
    assert [span.state for span in subject.states] == ["busy", "free"]
    assert subject.states[0].start == BEGIN
    assert subject.states[0].end == pytest.approx(
        BEGIN + 1200, abs=60
    )  # the last sample stands for a moment more
    assert (subject.states[1].start, subject.states[1].end) == (BEGIN + 1800, NOW)
    assert max(value for value in subject.metrics["power_watts"].high if value is not None) == 300.0


def test_a_table_has_a_line_for_each_step(past: ReportedPast) -> None:
    past.keep(rows=rows())
    answer = asyncio.run(past.history.devices(VIEWERS["ada"], structs.replace(DEVICE, format="csv")))
    assert answer.media_type.startswith("text/csv")
    assert answer.file_name == "gpuherd-devices.csv"
    lines = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
    assert len(lines) == 60
    assert lines[0]["time"].endswith("Z")
    assert float(lines[0]["utilization_gpu_mean"]) == pytest.approx(0.9, abs=1e-3)
    assert lines[25]["utilization_gpu_mean"] == ""


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"devices": ("n1",)}, 400, "bad_device"),
        ({"devices": ("n1/77",)}, 400, "bad_device"),
        ({"devices": (":GPU-0",)}, 400, "bad_device"),
        ({"devices": ("n1:",)}, 400, "bad_device"),
        ({"devices": ()}, 400, "too_many_devices"),
        ({"devices": tuple(f"n1:GPU-{n}" for n in range(65))}, 400, "too_many_devices"),
        ({"metrics": ("utilization_gpu", "colour")}, 400, "unknown_metric"),
        ({"devices": ("n9:GPU-9",)}, 404, "unknown_device"),
        ({"span": Wanted(since="soon")}, 400, "bad_range"),
    ],
)
def test_what_cannot_be_asked(past: ReportedPast, changes: dict[str, object], status: int, code: str) -> None:
    past.keep(rows=rows())
    with pytest.raises(HttpError) as caught:
        devices(past, question=structs.replace(DEVICE, **changes))
    assert (caught.value.status, caught.value.detail.code) == (status, code)
    if code == "unknown_metric":
        assert all(metric in caught.value.detail.message for metric in DEVICE_METRICS)


def test_a_device_goes_by_what_people_call_it(past: ReportedPast) -> None:
    past.keep(rows=rows())
    (named,) = devices(
        past, question=structs.replace(DEVICE, devices=("n1.lab/0", "N1/0", "n1:GPU-n1-0"))
    ).subjects
    assert (named.node_id, named.uuid) == ("n1", "GPU-n1-0")


def test_a_device_of_the_herd_without_a_past_is_a_gap(past: ReportedPast) -> None:
    (subject,) = devices(past, question=structs.replace(DEVICE, devices=("n2:GPU-n2-0",))).subjects
    assert set(subject.metrics["power_watts"].mean) == {None}
    assert subject.states == ()


def test_the_more_is_asked_for_the_fewer_points_there_are(past: ReportedPast) -> None:
    past.keep(rows=rows())
    many = structs.replace(
        DEVICE,
        devices=("n1:GPU-n1-0", *(f"n1:GPU-{number}" for number in range(63))),
        metrics=DEVICE_METRICS,
        points=2000,
        span=Wanted(since="10y"),
    )
    view = devices(past, question=many)
    assert len(view.subjects) == 64
    assert (len(view.times) - 1) * 64 * len(DEVICE_METRICS) <= MAX_NUMBERS


def test_hosts_show_the_public_what_the_live_view_does(past: ReportedPast) -> None:
    past.keep(rows=rows())
    question = HostQuestion(span=HOUR_AGO, node_id="n1", metrics=("cpu_ratio",), points=10)
    for who in ("public", "ada", "admin"):
        view: SeriesView = read(asyncio.run(past.history.host(VIEWERS[who], question)), SeriesView)
        assert view.subjects[0].metrics["cpu_ratio"].mean[0] == pytest.approx(0.25)
        assert view.subjects[0].uuid is None
    uptime = structs.replace(question, metrics=("uptime_seconds",))
    assert asyncio.run(past.history.host(VIEWERS["ada"], uptime)).body
    with pytest.raises(HttpError) as caught:
        asyncio.run(past.history.host(VIEWERS["public"], uptime))
    assert caught.value.detail.code == "unknown_metric"
    assert "uptime_seconds, " not in caught.value.detail.message.split("there are")[1]
    with pytest.raises(HttpError) as caught:
        asyncio.run(past.history.host(VIEWERS["ada"], structs.replace(question, node_id="n9")))
    assert (caught.value.status, caught.value.detail.code) == (404, "unknown_node")


def test_the_herd(past: ReportedPast) -> None:
    past.keep(rows=rows())
    question = HerdQuestion(span=HOUR_AGO, type=None, points=12)
    view: HerdSeries = read(asyncio.run(past.history.herd(VIEWERS["public"], question)), HerdSeries)
    assert view.devices["busy"][0] == pytest.approx(1.0)
    assert view.types == ("A100 80GB",)
    table = asyncio.run(past.history.herd(VIEWERS["public"], structs.replace(question, format="csv")))
    assert table.body.decode().startswith("time,devices_free,devices_busy")


def test_a_user_is_held_gpus_over_time(past: ReportedPast) -> None:
    slots = random_slots(1)
    # Nobody came before some time after watching had begun.
    begins_at = min(slot.slot for slot in slots) - 6 * 3600
    past.keep(slots, watched(begins_at + 450, NOW, every=300))
    question = UserQuestion(span=Wanted(since="4d"), user="ada", points=2000)
    view: UserSeries = read(asyncio.run(past.history.user(VIEWERS["bob"], question)), UserSeries)
    mine = [slot for slot in slots if slot.key.user in ("ada", "ada-laptop")]
    held = sum((value or 0.0) * view.step_seconds for value in view.held_gpus)
    assert held == pytest.approx(sum(slot.of("gpu_seconds") for slot in mine), rel=1e-2)
    for at, value in zip(view.times, view.held_gpus, strict=True):
        assert (value is None) == (at + view.step_seconds <= begins_at)
    nobody: UserSeries = read(
        asyncio.run(past.history.user(VIEWERS["bob"], structs.replace(question, user="nobody"))), UserSeries
    )
    assert {value for value in nobody.held_gpus if value is not None} == {0.0}


def held_gpus(past: ReportedPast, since: float, until: float | None = None) -> list[float | None]:
    span = Wanted(since=str(since), until=None if until is None else str(until))
    question = UserQuestion(span=span, user="ada", points=2000)
    view: UserSeries = read(asyncio.run(past.history.user(VIEWERS["bob"], question)), UserSeries)
    assert view.step_seconds == 900.0
    return view.held_gpus


def test_what_nobody_watched_is_not_taken_for_nothing_held(past: ReportedPast) -> None:
    # Two quarters of an hour with use, one without; a hub that was away for two and a half; use again.
    past.keep(
        used(NOW - 6300, 900.0) + used(NOW - 5400, 900.0) + used(NOW - 1800, 450.0) + used(NOW - 900, 900.0),
        watched(NOW - 6300, NOW - 3600) + watched(NOW - 1350, NOW),
    )
    assert held_gpus(past, NOW - 6300) == pytest.approx([1.0, 1.0, 0.0, None, None, 1.0, 1.0], abs=0.03)


def test_the_step_that_is_not_over_is_a_mean_of_what_there_was_of_it(past: ReportedPast) -> None:
    past.keep(
        used(NOW - 2700, 900.0) + used(NOW - 900, 900.0) + used(NOW, 300.0), watched(NOW - 2700, NOW + 300)
    )
    past.clock.advance(300.0)
    assert held_gpus(past, NOW - 1800) == pytest.approx([0.0, 1.0, 1.0], abs=0.03)
    # One that is over is not, however little of it was asked for.
    assert held_gpus(past, NOW - 1800, NOW - 600) == pytest.approx([0.0, 1.0], abs=0.03)


def test_where_someone_was_seen_something_was_watched(past: ReportedPast) -> None:
    past.keep(used(NOW - 1800, 450.0) + used(NOW - 900, 0.0))
    assert held_gpus(past, NOW - 1800) == [0.5, None]


def test_the_public_cannot_try_names(past: ReportedPast) -> None:
    past.keep(random_slots(2))
    question = UserQuestion(span=Wanted(since="4d"), user="ada", points=100)
    tried = read(asyncio.run(past.history.user(VIEWERS["public"], question)), UserSeries)
    other = read(
        asyncio.run(past.history.user(VIEWERS["public"], structs.replace(question, user="x"))), UserSeries
    )
    assert structs.replace(tried, user="x") == other
    pseudonym = past.fleet.face("public").user("ada") or ""
    found = read(
        asyncio.run(past.history.user(VIEWERS["public"], structs.replace(question, user=pseudonym))),
        UserSeries,
    )
    assert sum(value or 0.0 for value in found.held_gpus) > 0
    assert found.user == pseudonym


def test_who_sees_totals_alone_gets_nothing(past: ReportedPast) -> None:
    for ask in (
        past.history.devices(VIEWERS["counts"], DEVICE),
        past.history.herd(VIEWERS["counts"], HerdQuestion(span=HOUR_AGO, type=None, points=10)),
        past.history.user(VIEWERS["counts"], UserQuestion(span=HOUR_AGO, user="ada", points=10)),
        past.history.host(
            VIEWERS["counts"], HostQuestion(span=HOUR_AGO, node_id="n1", metrics=("cpu_ratio",), points=1)
        ),
    ):
        with pytest.raises(HttpError) as caught:
            asyncio.run(ask)
        assert caught.value.status == 403


def test_samples_that_are_kept_where_nobody_can_ask(past: ReportedPast) -> None:
    deaf = past.memory._replace(samples=None)
    desk = HistoryDesk(
        deaf, questions=past.questions, faces=past.history._faces, clock=past.clock, zone="UTC"
    )
    with pytest.raises(HttpError) as caught:
        asyncio.run(desk.devices(VIEWERS["ada"], DEVICE))
    assert (caught.value.status, caught.value.detail.code) == (503, "history_off")
    assert "read_url" in caught.value.detail.message


def test_viewers_who_look_a_moment_apart_share_an_answer(past: ReportedPast) -> None:
    past.keep(rows=rows())
    first = asyncio.run(
        past.history.herd(VIEWERS["ada"], HerdQuestion(span=Wanted(since="1h"), type=None, points=60))
    )
    span = Wanted(since=str(NOW - 3601.0))
    second = asyncio.run(past.history.herd(VIEWERS["bob"], HerdQuestion(span=span, type=None, points=60)))
    assert second is not first  # another ten seconds
    span = Wanted(since=str(NOW - 3600.0 + 0.4), until=str(NOW - 1.0))
    third = asyncio.run(past.history.herd(VIEWERS["bob"], HerdQuestion(span=span, type=None, points=60)))
    assert third is first
