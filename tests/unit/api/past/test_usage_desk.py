"""Reports of use: the numbers are those of the slots, and nobody is shown more than the live view would."""

from __future__ import annotations

import asyncio
import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import Engine

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import (
    Answer,
    DistributionQuestion,
    HoursQuestion,
    MonthQuestion,
    OverTimeQuestion,
    SessionsQuestion,
    TableFormat,
    UsageFilter,
    UsageQuestion,
    Wanted,
)
from gpuherd.api.past import booked as booked_module
from gpuherd.api.past.booked import BookedDevices, Holder
from gpuherd.history.batch import SeriesKey, SessionKey
from gpuherd.history.settings import EarlierAverages, UsageSettings
from gpuherd.history.usage.asking import BookedSpan
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import (
    USAGE_KEYS,
    MonthlyReport,
    TrendsView,
    UsageFigures,
    UsageKey,
    UsageOverTime,
    UsageReport,
    UsageSessions,
)
from gpuherd.model.people import Account
from gpuherd.records.people import PeopleRecords
from support.booking_drafts import BY, draft
from support.past import Row
from support.reported_past import ADA, NOW, VIEWERS, ReportedPast, Slot, random_slots, read, reported_past

ALL = Wanted(since="4d")
HOUR = 3600.0
NAMES = ("ada", "bob", "mallory", "cmd", "script", "box", "nightly", "train.py", "vision", "speech")


def usage(
    past: ReportedPast, who: str, by: UsageKey = "user", only: UsageFilter | None = None, limit: int = 1000
) -> UsageReport:
    question = UsageQuestion(span=ALL, by=by, only=only or UsageFilter(), limit=limit)
    report: UsageReport = read(asyncio.run(past.usage.usage(VIEWERS[who], question)), UsageReport)
    return report


def shown(slot: Slot) -> str | None:
    """What members call a slot's user."""
    return "ada" if slot.key.user == "ada-laptop" else slot.key.user


GROUPS: dict[str, tuple[str | None, ...]] = {"ada": ("vision",), "bob": ("speech", "vision")}
KEYS: dict[UsageKey, Callable[[Slot], list[str | None]]] = {
    "user": lambda slot: [shown(slot)],
    "group": lambda slot: [*GROUPS.get(shown(slot) or "", (None,))],
    "node": lambda slot: [slot.key.node_id],
    "type": lambda slot: [slot.key.type],
    "job": lambda slot: [slot.key.job],
    "device": lambda slot: [f"{slot.key.node_id}:{slot.key.uuid}"],
}


def summed(slots: list[Slot]) -> UsageFigures:
    """Work the figures out the long way."""

    def total(name: str) -> float:
        return math.fsum(slot.of(name) for slot in slots)

    joules = [slot.of("joules") for slot in slots if not math.isnan(slot.of("joules"))]
    gpu_hours, busy = total("gpu_seconds") / HOUR, total("busy_seconds") / HOUR
    unknown = total("unknown_seconds") / HOUR
    known = gpu_hours - unknown
    return UsageFigures(
        gpu_hours=gpu_hours,
        busy_hours=busy,
        idle_hours=gpu_hours - busy - unknown,
        unknown_hours=unknown,
        efficiency=busy / known if known else None,
        mean_utilization=total("work_seconds") / HOUR / known if known else None,
        memory_gib_hours=total("memory_byte_seconds") / 2**30 / HOUR,
        energy_kwh=math.fsum(joules) / 3.6e6 if joules else None,
    )


def assert_alike(told: UsageFigures, wanted: UsageFigures) -> None:
    for name in UsageFigures.__struct_fields__:
        value = getattr(wanted, name)
        if name not in ("cost", "idle_cost"):
            assert getattr(told, name) == (
                None if value is None else pytest.approx(value, rel=1e-6, abs=1e-9)
            ), name


@pytest.mark.parametrize("by", USAGE_KEYS)
def test_numbers_are_those_of_the_slots(past: ReportedPast, by: UsageKey) -> None:
    slots = random_slots(1)
    past.keep(slots)
    report = usage(past, "admin", by)
    groups: dict[str | None, list[Slot]] = {}
    for slot in slots:
        for key in KEYS[by](slot):
            groups.setdefault(key, []).append(slot)
    assert {row.key for row in report.rows} == groups.keys()
    for row in report.rows:
        mine = groups[row.key]
        assert_alike(row.figures, summed(mine))
        assert row.sessions == len({slot.key for slot in mine})
        assert row.devices == len({(slot.key.node_id, slot.key.uuid) for slot in mine})
        told = row.figures
        assert told.busy_hours + told.idle_hours + told.unknown_hours == pytest.approx(told.gpu_hours)
    assert_alike(report.totals, summed(slots))
    hours = [row.figures.gpu_hours for row in report.rows]
    assert hours == sorted(hours, reverse=True)


def test_rows_beyond_the_limit_are_counted_and_told(past: ReportedPast) -> None:
    past.keep(random_slots(2))
    whole, cut = usage(past, "admin"), usage(past, "admin", limit=2)
    assert cut.rows == whole.rows[:2]
    assert cut.omitted_rows == len(whole.rows) - 2
    assert cut.totals == whole.totals


@pytest.mark.parametrize(
    ("only", "keep"),
    [
        (UsageFilter(user="ada"), lambda slot: shown(slot) == "ada"),
        (UsageFilter(group="vision"), lambda slot: shown(slot) in ("ada", "bob")),
        (UsageFilter(group="vision", user="bob"), lambda slot: shown(slot) == "bob"),
        (UsageFilter(node="n1"), lambda slot: slot.key.node_id == "n1"),
        (UsageFilter(type="H100"), lambda slot: slot.key.type == "H100"),
        (UsageFilter(job="nightly"), lambda slot: slot.key.job == "nightly"),
        (UsageFilter(device="GPU-n1-0"), lambda slot: slot.key.uuid == "GPU-n1-0"),
        (UsageFilter(device="n1.lab/0"), lambda slot: slot.key.uuid == "GPU-n1-0"),
        (UsageFilter(device="N1/1"), lambda slot: slot.key.uuid == "GPU-n1-1"),
        (UsageFilter(device="gone:GPU-gone-0"), lambda slot: slot.key.node_id == "gone"),
        (UsageFilter(device="GPU-gone-0", node="gone"), lambda slot: slot.key.node_id == "gone"),
        (UsageFilter(user="nobody"), lambda slot: False),
        (UsageFilter(node="nowhere"), lambda slot: False),
    ],
)
def test_filters(past: ReportedPast, only: UsageFilter, keep: Callable[[Slot], bool]) -> None:
    slots = random_slots(3)
    past.keep(slots)
    report = usage(past, "admin", "node", only)
    assert_alike(report.totals, summed([slot for slot in slots if keep(slot)]))


def test_labels_are_those_of_the_live_view(past: ReportedPast) -> None:
    past.keep(random_slots(4))
    nodes = {row.key: row.label for row in usage(past, "ada", "node").rows}
    assert nodes == {"n1": "n1.lab", "n2": "n2.lab", "gone": "gone"}
    devices = {row.key: row.label for row in usage(past, "ada", "device").rows}
    assert devices["n1:GPU-n1-1"] == "n1.lab/1"
    assert devices["gone:GPU-gone-0"] == "gone/GPU-gone-0"
    users = {row.key: row.label for row in usage(past, "ada").rows}
    assert users[None] == "unknown"
    assert "ada-laptop" not in users
    assert {row.key: row.label for row in usage(past, "ada", "group").rows}[None] == "no group"


# -- who sees what -------------------------------------------------------------------------------------------------


def every_answer(
    past: ReportedPast, who: str, only: UsageFilter, forms: tuple[TableFormat, ...] = ("json",)
) -> dict[str, bytes]:
    """Ask everything that one may ask."""
    viewer = VIEWERS[who]

    async def ask() -> dict[str, Answer]:
        answers = {}
        for form in forms:
            for by in ("user", "node", "type", "device") if who in ("public", "names") else USAGE_KEYS:
                answers[f"usage {by} {form}"] = await past.usage.usage(
                    viewer, UsageQuestion(span=ALL, by=by, only=only, limit=1000, format=form)
                )
                answers[f"over time {by} {form}"] = await past.usage.over_time(
                    viewer,
                    OverTimeQuestion(span=ALL, by=by, only=only, step="day", top=50, zone=None, format=form),
                )
            answers[f"trends {form}"] = await past.usage.trends(viewer, form)
            answers[f"sessions {form}"] = await past.usage.sessions(
                viewer, SessionsQuestion(span=ALL, only=only, limit=1000, format=form)
            )
            answers[f"hours {form}"] = await past.usage.hours(
                viewer, HoursQuestion(span=ALL, zone=None, type=None, format=form)
            )
            answers[f"distribution {form}"] = await past.usage.distribution(
                viewer, DistributionQuestion(span=ALL, type=None, format=form)
            )
        if "json" in forms:
            month = MonthQuestion(
                month="2026-09", zone=None, format="html" if who == "public" else "markdown"
            )
            answers["month"] = await past.usage.month(viewer, month)
        return answers

    return {name: answer.body for name, answer in asyncio.run(ask()).items()}


def sessions_text(past: ReportedPast, who: str, only: UsageFilter) -> str:
    question = SessionsQuestion(span=ALL, only=only, limit=1000)
    return asyncio.run(past.usage.sessions(VIEWERS[who], question)).body.decode()


def test_the_public_reads_no_name_in_any_answer(past: ReportedPast) -> None:
    past.keep(random_slots(5))
    # "ada" is a number, too, in hexadecimal: by chance it would be in an id.
    past.usage._reports._id_key = bytes(32)
    for name, body in every_answer(past, "public", UsageFilter(), ("json", "csv")).items():
        text = body.decode()
        for secret in NAMES:
            # Their own words: "script" is in no page of ours, and pseudonyms are of other words.
            assert secret not in text, (name, secret)


def test_without_a_login_names_may_be_read_but_no_command_job_group_or_container(past: ReportedPast) -> None:
    past.keep(random_slots(5))
    every_answer(past, "admin", UsageFilter())  # what is made for one class is not given to another
    for name, body in every_answer(past, "names", UsageFilter(), ("json", "csv")).items():
        text = body.decode()
        assert "--secret-of" not in text, name
        if name.startswith(("usage user", "sessions", "month")):
            assert "bob" in text, name
    stays = read(
        asyncio.run(
            past.usage.sessions(VIEWERS["names"], SessionsQuestion(span=ALL, only=UsageFilter(), limit=1000))
        ),
        UsageSessions,
    )
    assert {(stay.command, stay.job, stay.container) for stay in stays.sessions} == {(None, None, None)}
    for by, only in (("group", UsageFilter()), ("job", UsageFilter()), ("node", UsageFilter(job="nightly"))):
        with pytest.raises(HttpError) as caught:
            usage(past, "names", by, only)  # type: ignore[arg-type]
        assert caught.value.status == 401


def test_members_read_names_but_only_their_own_command_lines(past: ReportedPast) -> None:
    past.keep(random_slots(5))
    for name, body in every_answer(past, "ada", UsageFilter()).items():
        text = body.decode()
        assert "--secret-of bob" not in text, name
        assert "--secret-of mallory" not in text, name
        if name.startswith(("usage user", "sessions", "month")):
            assert "bob" in text, name
    mine = sessions_text(past, "ada", UsageFilter(user="ada"))
    assert "--secret-of ada " in mine
    assert "--secret-of ada-laptop " in mine  # an alias of hers
    assert "--secret-of bob" in sessions_text(past, "bob", UsageFilter())


def test_admins_read_all_and_that_is_noted(past: ReportedPast) -> None:
    past.keep(random_slots(5))
    text = sessions_text(past, "admin", UsageFilter())
    for user in ("ada", "bob", "mallory"):
        assert f"--secret-of {user} " in text
    noted: list[str] = []

    async def write() -> None:
        async def append(deeds: list[object]) -> None:
            noted.extend(f"{deed.action} {deed.subject}" for deed in deeds)  # type: ignore[attr-defined]

        await past.reads.write(append)  # type: ignore[arg-type]

    asyncio.run(write())
    assert noted == ["command_lines.read usage"]


def test_who_sees_totals_alone_gets_nothing(past: ReportedPast) -> None:
    past.keep(random_slots(5))
    with pytest.raises(HttpError) as caught:
        usage(past, "counts")
    assert caught.value.status == 403


def test_the_public_asks_by_pseudonym_and_cannot_try_names(past: ReportedPast) -> None:
    slots = random_slots(6)
    past.keep(slots)
    pseudonym = past.fleet.face("public").user("ada")
    found = usage(past, "public", "node", UsageFilter(user=pseudonym))
    assert_alike(found.totals, summed([slot for slot in slots if shown(slot) == "ada"]))
    tried, other = UsageFilter(user="ada"), UsageFilter(user="nobody-of-this-name")
    assert usage(past, "public", only=tried) == usage(past, "public", only=other)
    assert sessions_text(past, "public", tried) == sessions_text(past, "public", other)
    sessions: UsageSessions = read(
        asyncio.run(
            past.usage.sessions(VIEWERS["public"], SessionsQuestion(span=ALL, only=UsageFilter(), limit=1000))
        ),
        UsageSessions,
    )
    assert not {one.id for one in sessions.sessions} & {slot.key.id for slot in slots}
    assert len({one.id for one in sessions.sessions}) == len({slot.key for slot in slots})


@pytest.mark.parametrize(
    ("by", "only"),
    [
        ("group", UsageFilter()),
        ("job", UsageFilter()),
        ("node", UsageFilter(group="vision")),
        ("node", UsageFilter(job="nightly")),
    ],
)
def test_groups_and_jobs_are_not_for_the_public(past: ReportedPast, by: UsageKey, only: UsageFilter) -> None:
    with pytest.raises(HttpError) as caught:
        usage(past, "public", by, only)
    assert (caught.value.status, caught.value.detail.code) == (401, "login_needed")


def test_answers_for_one_class_are_never_given_to_another(past: ReportedPast) -> None:
    past.keep(random_slots(7))
    for _ in range(2):  # the second time, all are kept
        assert "bob" in {row.key for row in usage(past, "ada").rows}
        assert "bob" not in {row.key for row in usage(past, "public").rows}


def test_tables_hold_no_formulas(past: ReportedPast) -> None:
    past.keep(random_slots(8))
    seen = 0
    for name, body in every_answer(past, "admin", UsageFilter(), ("csv",)).items():
        for row in csv.reader(io.StringIO(body.decode(), newline="")):
            for cell in row:
                seen += cell.startswith("'=")
                assert not cell.startswith(("=", "+", "@", "\t", "\r")), name
                if cell.startswith("-"):
                    float(cell)
    assert seen > 0


# -- bookings, costs, trends, time -----------------------------------------------------------------------------------


def stay(user: str | None, node: str, index: int, first: float, last: float, **more: float) -> list[Slot]:
    """Someone alone on a GPU for whole slots, at work."""
    kind = "H100" if node == "n2" else "A100 80GB"
    key = SessionKey(node, f"GPU-{node}-{index}", kind, user, None, None, first)
    measures = (900.0, 900.0, 600.0, 0.0, 450.0, 900.0 * 2**30, 900.0 * 200)
    return [Slot(key, slot, measures, "python x.py") for slot in range(int(first), int(last), 900)]


def test_booked_against_used(past: ReportedPast, engine: Engine) -> None:
    made = PeopleRecords(engine).create_account(
        name="ada", display_name="Ada", role="member", now=NOW - 1e6, by=BY
    )
    past.people.set(
        *(account for account in past.people.accounts() if account.name != "ada"), _with_id(made.id)
    )
    begin = int(NOW) - 10 * 3600
    n1, n2 = DeviceRef("n1", "GPU-n1-0"), DeviceRef("n2", "GPU-n2-0")
    past.bookings.create(
        [
            draft(n1, n2, at=begin, hours=4, owner_id=made.id),
            draft(n1, at=begin + 4 * 3600, hours=2, owner_name="Carl"),
        ],
        now=begin - 60,
        by=BY,
    )
    past.keep(
        [
            *stay("ada-laptop", "n1", 0, begin, begin + 3600),  # the holder, by another name
            *stay("bob", "n1", 0, begin + 2 * 3600, begin + 3 * 3600),  # someone else
            *stay("ada", "n2", 0, begin, begin + 4 * 3600),
        ]
    )
    report = usage(past, "bob")
    rows = {row.key: row for row in report.rows}
    mine = rows["ada"].bookings
    assert mine is not None
    assert (mine.booked_hours, mine.used_hours, mine.others_hours) == pytest.approx((8.0, 5.0, 1.0))
    assert mine.unused_hours == pytest.approx(2.0)
    absent = rows["Carl"]  # has booked and never come
    assert absent.figures.gpu_hours == 0.0
    assert absent.bookings is not None
    assert absent.bookings.unused_hours == pytest.approx(2.0)
    assert report.bookings is not None
    assert report.bookings.booked_hours == pytest.approx(10.0)
    by_type = {row.key: row.bookings for row in usage(past, "bob", "type").rows}
    assert by_type["H100"] is not None
    assert by_type["H100"].used_hours == pytest.approx(4.0)
    by_group = {row.key: row.bookings for row in usage(past, "bob", "group").rows}
    assert by_group["vision"] is not None
    assert by_group["vision"].booked_hours == pytest.approx(8.0)
    public = usage(past, "public")
    pseudonym = past.fleet.face("public").user("ada")
    assert {row.key: row.bookings for row in public.rows}[pseudonym] == mine
    assert "Carl" not in {row.key for row in public.rows}
    long = UsageQuestion(span=Wanted(since="181d"), by="user", only=UsageFilter(), limit=10)
    older: UsageReport = read(asyncio.run(past.usage.usage(VIEWERS["bob"], long)), UsageReport)
    assert older.bookings is None  # of some of that time it is not known any more who was there
    filtered = usage(past, "bob", "node", UsageFilter(user="ada", node="n2")).bookings
    assert filtered is not None
    assert filtered.booked_hours == pytest.approx(4.0)


def test_many_bookings_are_compared_in_portions(past: ReportedPast, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = int(NOW) - 40 * 3600
    spans = []
    for number in range(30):
        node, index = [("n1", 0), ("n1", 1), ("n2", 0)][number % 3]
        first = begin + (number * 7 % 30) * 3600.0
        users = frozenset({"ada" if number % 2 else "bob"})
        spans.append(
            BookedSpan(number, users, node, f"GPU-{node}-{index}", first, first + 3600.0 * (1 + number % 5))
        )
    past.keep([*stay("ada", "n1", 0, begin, NOW - 3600), *stay("bob", "n2", 0, begin + 7200, NOW - 7200)])
    holder = Holder("x", (None,), frozenset())
    booked = BookedDevices(tuple(spans), (holder,) * len(spans))
    whole = booked.ask(past.memory.usage)
    monkeypatch.setattr(booked_module, "PORTION_SECONDS", 4 * 3600.0)
    assert len(list(booked._portions())) > 5
    assert booked.ask(past.memory.usage) == whole
    assert [use.id for use in whole] == list(range(30))
    assert BookedDevices((), ()).ask(past.memory.usage) == ()


def _with_id(account_id: str) -> Account:
    return structs.replace(ADA, id=account_id)


def test_costs_are_by_type_and_energy(tmp_path: Path, engine: Engine) -> None:
    prices = UsageSettings(
        currency="CHF", cost_per_gpu_hour=1.0, cost_per_gpu_hour_by_type={"H100": 4.0}, cost_per_kwh=0.5
    )
    begin = int(NOW) - 10 * 3600
    with reported_past(tmp_path / "history", engine, usage=prices) as past:
        past.keep([*stay("ada", "n1", 0, begin, begin + 7200), *stay("ada", "n2", 0, begin, begin + 3600)])
        report = usage(past, "ada")
    figures = report.rows[0].figures
    energy = 3 * 3600 * 200 / 3.6e6
    assert report.currency == "CHF"
    assert figures.cost == pytest.approx(2 * 1.0 + 1 * 4.0 + 0.5 * energy)
    assert figures.idle_cost == pytest.approx((2 * 1.0 + 1 * 4.0) / 3)


def test_without_prices_no_costs_are_told(past: ReportedPast) -> None:
    past.keep(random_slots(9))
    report = usage(past, "ada")
    assert report.currency is None
    assert all(row.figures.cost is None and row.figures.idle_cost is None for row in report.rows)


@pytest.mark.parametrize("by", USAGE_KEYS)
def test_steps_add_up_to_the_report(past: ReportedPast, by: UsageKey) -> None:
    slots = random_slots(10)
    past.keep(slots)
    question = OverTimeQuestion(span=ALL, by=by, only=UsageFilter(), step="day", top=2, zone="Asia/Kathmandu")
    view: UsageOverTime = read(asyncio.run(past.usage.over_time(VIEWERS["ada"], question)), UsageOverTime)
    report = usage(past, "ada", by)
    assert view.keys == [row.key for row in report.rows[:2]]
    for row, hours, busy in zip(report.rows, view.gpu_hours, view.busy_hours, strict=False):
        assert sum(hours) == pytest.approx(row.figures.gpu_hours, rel=1e-3)
        assert sum(busy) == pytest.approx(row.figures.busy_hours, rel=1e-3)
    if by == "group":
        assert min(view.others_gpu_hours) >= 0.0  # bob is in both rows
    else:
        total = sum(map(sum, view.gpu_hours)) + sum(view.others_gpu_hours)
        assert total == pytest.approx(summed(slots).gpu_hours, rel=1e-3)


def test_the_time_before_anything_was_remembered_is_missing(past: ReportedPast) -> None:
    begin = int(NOW) - 3600
    past.keep(stay("ada", "n1", 0, begin, begin + 1800))
    report = usage(past, "ada")
    (before,) = report.missing
    assert before.start == report.start
    assert before.end == pytest.approx(begin, abs=3600)
    assert usage(past, "ada", only=UsageFilter(user="nobody")).missing == report.missing


def test_steps_in_which_nothing_was_watched_are_missing(past: ReportedPast) -> None:
    def hours() -> list[tuple[float, float]]:
        span = Wanted(since=str(begin - 3600.0), until=str(NOW))
        question = OverTimeQuestion(
            span=span, by="user", only=UsageFilter(user="ada"), step="hour", top=5, zone=None
        )
        answer = asyncio.run(past.usage.over_time(VIEWERS["bob"], question))
        return [(part.start, part.end) for part in read(answer, UsageOverTime).missing]

    # Ada in the first hour, then an idle GPU; of the third and fourth hour nothing is known.
    begin = int(NOW) // 3600 * 3600 - 6 * 3600
    idle = SeriesKey("n2", "GPU-n2-0", "H100")
    past.keep(
        stay("ada", "n1", 0, begin, begin + 3600),
        [
            (idle, begin + float(at), {}, 0)
            for at in (*range(3600, 7201, 60), *range(15_000, 15_600, 60), *range(18_060, 23_400, 60))
        ],
    )
    assert hours() == [(begin - 3600, begin), (begin + 7200, begin + 14_400)]


def test_nothing_remembered_at_all(past: ReportedPast) -> None:
    report = usage(past, "ada")
    assert report.rows == ()
    assert report.totals.gpu_hours == 0.0
    assert report.totals.energy_kwh is None
    assert report.totals.efficiency is None
    assert report.capacity_hours is None
    assert [(part.start, part.end) for part in report.missing] == [(report.start, report.end)]
    assert read(asyncio.run(past.usage.trends(VIEWERS["ada"], "json")), TrendsView).rows == ()
    for form in ("markdown", "html", "json"):
        question = MonthQuestion(month="2026-09", zone=None, format=form)
        assert asyncio.run(past.usage.month(VIEWERS["ada"], question)).body


def test_trends(past: ReportedPast, engine: Engine) -> None:
    made = PeopleRecords(engine).create_account(
        name="ada", display_name="Ada", role="member", now=NOW - 1e6, by=BY
    )
    past.people.set(_with_id(made.id))
    past.bookings.create(
        [draft(DeviceRef("n1", "GPU-n1-0"), at=int(NOW) - 60, hours=1, owner_id=made.id)],
        now=NOW - 120,
        by=BY,
    )
    past.keep([*stay("ada", "n1", 0, NOW - 7200, NOW), *stay("bob", "n2", 0, NOW - 86_400, NOW - 43_200)])

    async def ask() -> Answer:
        await past.booking_memory.refresh()
        return await past.usage.trends(VIEWERS["bob"], "json")

    view: TrendsView = read(asyncio.run(ask()), TrendsView)
    rows = {row.user: row for row in view.rows}
    assert view.rows[0].user == "ada"
    assert rows["ada"].reserved_gpus == 1.0
    assert rows["ada"].mean_2h > rows["ada"].mean_24h > rows["ada"].mean_1w * 0.9
    assert rows["ada"].trend == "up"
    assert rows["bob"].trend == "down"
    assert rows["bob"].used_gpus == 0.0
    assert (rows["bob"].trend_2h, rows["bob"].trend_24h) == ("level", "down"), "each against now"
    ada = rows["ada"]
    for trend, mean in (
        (ada.trend_2h, ada.mean_2h),
        (ada.trend_24h, ada.mean_24h),
        (ada.trend_1w, ada.mean_1w),
    ):
        assert trend == ("up" if ada.used_gpus > 1.1 * mean and ada.used_gpus > mean + 0.1 else "level")
    assert view.rows == tuple(
        sorted(view.rows, key=lambda row: -(row.reserved_gpus + 1.5 * row.used_gpus + 0.15 * row.mean_2h))
    )
    told = view.free.label, view.free.used_gpus, view.free.reserved_gpus
    assert told == ("free", 2.0, 4.0), "of five, one is booked"


def test_trends_have_the_old_pages_arrows_and_order(past: ReportedPast) -> None:
    past.bookings.create(
        [draft(DeviceRef("n2", "GPU-n2-0"), at=int(NOW) - 60, hours=1, owner_name="Carl")],
        now=NOW - 120,
        by=BY,
    )
    past.keep(
        [
            *stay("ada", "n1", 0, NOW - 900, NOW),
            *stay("bob", "n1", 1, NOW - 7200, NOW - 900),
            *stay("eve", "n1", 0, NOW - 86_400, NOW - 7200),
        ]
    )

    async def ask() -> Answer:
        await past.booking_memory.refresh()
        return await past.usage.trends(VIEWERS["bob"], "json")

    rows = read(asyncio.run(ask()), TrendsView).rows
    # One that is used counts more than one that is booked; averages only then.
    assert [row.user for row in rows] == ["ada", "Carl", "bob", "eve"]
    # Lately more than on the average of a day, but nothing now: each arrow is against now.
    bob = rows[2]
    assert bob.mean_2h > bob.mean_24h + 0.1
    assert (bob.trend, bob.trend_2h, bob.trend_24h) == ("up", "down", "down")


def test_averages_of_an_older_page_go_on_and_are_said_to_be_its_own(tmp_path: Path, engine: Engine) -> None:
    switch = NOW - 7200
    gpus = {"ada": (0.0, 2.0, 2.0), "gone": (0.0, 0.0, 3.0)}

    def view(who: str, until: float = switch) -> TrendsView:
        usage = UsageSettings(earlier=EarlierAverages(until=until, gpus=gpus))
        with reported_past(tmp_path / f"{who}-{until}", engine, usage=usage) as past:
            past.keep(stay("Ada", "n1", 0, switch, NOW))
            found: TrendsView = read(asyncio.run(past.usage.trends(VIEWERS[who], "json")), TrendsView)
            return found

    rows = {row.user: row for row in view("ada").rows}
    # As if the older page had gone on: what was fades with the same time constants, one GPU since then is added.
    for mean, constant, before in (
        (rows["Ada"].mean_2h, 7200.0, 0.0),
        (rows["Ada"].mean_24h, 86_400.0, 2.0),
        (rows["Ada"].mean_1w, 604_800.0, 2.0),
    ):
        fading = math.exp(-7200 / constant)
        assert mean == pytest.approx(before * fading + 1.0 * (1 - fading), rel=0.02)
    assert rows["gone"].mean_1w == pytest.approx(3.0 * math.exp(-7200 / 604_800), rel=0.01)
    assert (rows["gone"].used_gpus, rows["gone"].mean_2h) == (0.0, 0.0)
    assert view("ada").earlier_until == switch
    # To the public they are as nameless as everyone; after four weeks, and before their time, they do not count.
    assert not {"ada", "Ada", "gone"} & {row.user for row in view("public").rows}
    for until in (NOW - 29 * 86_400, NOW + 3600):
        later = view("ada", until)
        assert later.earlier_until is None
        assert {row.user for row in later.rows} == {"Ada"}


def test_a_holder_who_is_written_in_another_way_is_one_row(past: ReportedPast) -> None:
    devices = DeviceRef("n1", "GPU-n1-0"), DeviceRef("n2", "GPU-n2-0")
    for device, name in zip(devices, ("Bob", "+BOB"), strict=True):
        booked = draft(device, at=int(NOW) - 60, owner_name=name, origin="comments")
        past.bookings.create([booked], now=NOW - 120, by=BY)
    past.keep(stay("bob", "n1", 0, NOW - 7200, NOW))

    async def ask() -> Answer:
        await past.booking_memory.refresh()
        return await past.usage.trends(VIEWERS["ada"], "json")

    view: TrendsView = read(asyncio.run(ask()), TrendsView)
    assert [(row.user, row.reserved_gpus) for row in view.rows] == [("bob", 2.0)]


def test_a_stay_has_its_own_begin_and_end_whatever_the_range(past: ReportedPast) -> None:
    begin, end = int(NOW) - 8 * 3600, int(NOW) - 2 * 3600
    past.keep(stay("ada", "n1", 0, begin, end))
    span = Wanted(since=str(begin + 7200), until=str(begin + 10_800))
    question = SessionsQuestion(span=span, only=UsageFilter(), limit=10)
    view: UsageSessions = read(asyncio.run(past.usage.sessions(VIEWERS["ada"], question)), UsageSessions)
    (one,) = view.sessions
    assert (one.started_at, one.ended_at, one.node, one.user) == (begin, end, "n1.lab", "ada")
    assert one.figures.gpu_hours == pytest.approx(1.0)
    assert view.is_complete


def test_sessions_are_bounded_and_say_so(past: ReportedPast) -> None:
    past.keep(random_slots(11))
    question = SessionsQuestion(span=ALL, only=UsageFilter(), limit=5)
    view: UsageSessions = read(asyncio.run(past.usage.sessions(VIEWERS["ada"], question)), UsageSessions)
    assert len(view.sessions) == 5
    assert not view.is_complete


def test_a_month_is_that_of_the_zone_and_compared_with_the_one_before(past: ReportedPast) -> None:
    # 2026-09-01 00:00 in Kathmandu is 2026-08-31 18:15 UTC.
    first = 1_788_200_100
    past.keep(
        [
            *stay("ada", "n1", 0, first - 3600, first),
            *stay("bob", "n1", 0, first, first + 7200),
            *stay("ada", "n2", 0, NOW - 7200, NOW),
        ]
    )
    question = MonthQuestion(month="2026-09", zone="Asia/Kathmandu")
    report: MonthlyReport = read(asyncio.run(past.usage.month(VIEWERS["admin"], question)), MonthlyReport)
    assert not report.is_complete
    assert report.by_user.totals.gpu_hours == pytest.approx(4.0)
    assert report.previous is not None
    assert report.previous.gpu_hours == pytest.approx(1.0)
    assert report.by_day.times[0] == first
    assert sum(map(sum, report.by_day.gpu_hours)) == pytest.approx(4.0)
    for month, code in (("2026-10", "bad_month"), ("2026-13", "bad_month"), ("x", "bad_month")):
        with pytest.raises(HttpError) as caught:
            asyncio.run(past.usage.month(VIEWERS["admin"], MonthQuestion(month=month, zone=None)))
        assert (caught.value.status, caught.value.detail.code) == (400, code)


def test_capacity_is_told_of_the_herd_and_of_types(past: ReportedPast) -> None:

    busy, free = DEVICE_STATES.index("busy"), DEVICE_STATES.index("free")
    begin = NOW - 2 * 3600
    rows: list[Row] = []
    for minute in range(121):
        at = begin + 60 * minute
        rows.append((SeriesKey("n1", "GPU-n1-0", "A100 80GB"), at, {"utilization_gpu": 0.9}, busy))
        rows.append((SeriesKey("n2", "GPU-n2-0", "H100"), at, {"utilization_gpu": 0.0}, free))
    past.keep(stay("ada", "n1", 0, begin, NOW), rows)
    report = usage(past, "ada")
    assert report.capacity_hours == pytest.approx(4.0, abs=0.1)
    assert report.free_hours == pytest.approx(2.0, abs=0.1)
    assert usage(past, "ada", only=UsageFilter(type="H100")).capacity_hours == pytest.approx(2.0, abs=0.1)
    assert usage(past, "ada", only=UsageFilter(user="ada")).capacity_hours is None


def test_case_and_plus_give_nobody_the_command_lines_of_another(past: ReportedPast) -> None:
    """Holders of bookings are compared loosely; who may read is not."""
    face = past.usage._faces.of(VIEWERS["ada"])
    told = {user: face.command(user, "python secret.py") for user in ("ada", "Ada", "ADA", "ada+", " ada")}
    assert told == {"ada": "python secret.py"} | dict.fromkeys(("Ada", "ADA", "ada+", " ada"), told["ADA"])
    assert "secret" not in str(told["ADA"])
