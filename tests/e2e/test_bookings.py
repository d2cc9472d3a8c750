"""Booking in the browser: the timeline, the form that nothing disturbs, one's own bookings, badges at devices."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.places import expect_no_overflow, show
from e2e.reports import IDLE, gpu, report, working
from e2e.test_accessibility import violations
from gpuherd.model.processes import Process

PASSWORD = "correct horse battery"
HOUR = 3600
DAY = 24 * HOUR
GRID = "[role=application]"
ZONE = "Europe/Berlin"


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "timezone_id": ZONE}


class Lab:
    """A hub with two nodes, on the first of which cleo works, and three people who may log in."""

    def __init__(self, hub: HubProcess, password_file: str) -> None:
        self.hub, self.url = hub, hub.url
        self.alpha, self.beta = hub.join("alpha"), hub.join("beta")
        self.tell()
        for name, role in (("wera", "member"), ("bo", "member"), ("ada", "admin")):
            hub.administer("account", "create", name, "--role", role, "--password-file", password_file)

    def tell(self) -> None:
        """Let the nodes report."""
        cleo = Process(pid=11, user="cleo", command="python train.py", started_at=time.time() - 7200)
        self.alpha.report(
            report(
                [(gpu(i, uuid=f"GPU-a{i}"), working(0.9) if i == 3 else IDLE) for i in range(4)],
                processes=[(3, cleo)],
            )
        )
        self.beta.report(report([(gpu(i, uuid=f"GPU-b{i}"), IDLE) for i in range(2)]))

    def log_in(self, page: Page, name: str) -> None:
        """Log in without the page, which has tests of its own for that."""
        answer = page.request.post(
            f"{self.url}api/v1/session",
            data={"name": name, "password": PASSWORD},
            headers={"Origin": self.url.rstrip("/")},
        )
        assert answer.ok, answer.text()

    def ask(self, page: Page, method: str, path: str, body: object = None) -> Any:
        """Ask the hub as whoever is logged in."""
        answer = page.request.fetch(
            f"{self.url}api/v1/{path}",
            method=method,
            headers={"Origin": self.url.rstrip("/"), "Content-Type": "application/json"},
            data=None if body is None else json.dumps(body),
        )
        assert answer.ok, answer.text()
        return answer.json()

    def book(self, page: Page, name: str, devices: list[str], start: int, hours: float, title: str) -> int:
        """Book as someone else; gives the booking's number."""
        self.log_in(page, name)
        refs = [
            {"node_id": (self.alpha if uuid.startswith("GPU-a") else self.beta).id, "uuid": uuid}
            for uuid in devices
        ]
        end = start + int(hours * HOUR)
        body = {"devices": refs, "start": start, "end": end, "zone": ZONE, "title": title}
        (made,) = self.ask(page, "POST", "bookings", body)
        page.context.clear_cookies()
        return int(made["id"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "password").write_text(PASSWORD)
    hub = HubProcess(folder, config='[hub]\npublic = "read"\n')
    hub.start()
    try:
        yield Lab(hub, str(folder / "password"))
    finally:
        hub.stop()


@pytest.fixture
def lab(running: Lab, page: Page) -> Iterator[Lab]:
    """Give the lab with reports that are new, and without the bookings of the test before."""
    running.tell()
    yield running
    page.context.clear_cookies()
    running.log_in(page, "ada")
    for booking in running.ask(page, "GET", f"bookings?since={int(time.time())}"):
        verb = "release" if booking["phase"] == "current" else "cancel"
        running.ask(page, "POST", f"bookings/{booking['id']}/{verb}", {} if verb == "cancel" else None)


def _tomorrow() -> int:
    """Give noon of tomorrow in the lab's zone: far from both ends of the day that is shown."""
    day = datetime.now(ZoneInfo(ZONE)) + timedelta(days=1)
    return int(day.replace(hour=12, minute=0, second=0, microsecond=0).timestamp())


def _timeline(page: Page, lab: Lab, at: int, rest: str = "") -> None:
    """Open the day that holds a moment."""
    day = time.strftime("%Y-%m-%d", time.gmtime(at))
    show(page, f"{lab.url}?timeline=day.{day}{rest}")
    expect(page.locator("[data-loaded=true]")).to_be_visible()
    expect(_row(page, "GPU-a0")).to_be_visible()


def _row(page: Page, uuid: str) -> Locator:
    return page.locator(f"[data-row$='{uuid}']")


def _point(page: Page, uuid: str, hour: float) -> tuple[float, float]:
    """Give where an hour of the shown day is on a device's line."""
    box = _row(page, uuid).locator(".track").bounding_box()
    assert box is not None
    return box["x"] + box["width"] * hour / 24, box["y"] + box["height"] / 2


def _drag(page: Page, start: tuple[str, float], end: tuple[str, float]) -> None:
    page.mouse.move(*_point(page, *start))
    page.mouse.down()
    x, y = _point(page, *end)
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)


def _sheet(page: Page) -> Locator:
    return page.locator("dialog[open]").first


def test_dragging_over_lines_books_them_as_one(page: Page, lab: Lab) -> None:
    noon = _tomorrow()
    lab.log_in(page, "wera")
    _timeline(page, lab, noon)
    _drag(page, ("GPU-a0", 12.1), ("GPU-a1", 15.9))
    expect(page.get_by_role("status").filter(has_text="2 GPUs")).to_contain_text("12:00 – 16:00")
    page.mouse.up()
    sheet = _sheet(page)
    expect(sheet.get_by_role("list", name="These GPUs").get_by_role("listitem")).to_have_count(2)
    expect(sheet.locator("[data-reading]")).to_contain_text("12:00 – 16:00 CET")
    # What others do meanwhile, and what the stream brings, changes nothing in the form.
    sheet.get_by_label("Title").fill("sweep")
    lab.tell()
    sheet.get_by_label("Until").fill("3h 30m")
    expect(sheet.locator("[data-reading]")).to_contain_text("15:30")
    sheet.get_by_role("button", name="Book", exact=True).click()
    expect(sheet.get_by_role("heading", name="sweep")).to_be_visible()
    expect(sheet.get_by_role("status").filter(has_text="Booked.")).to_be_visible()
    bars = page.locator("button[data-booking].own")
    expect(bars).to_have_count(2)
    (booking,) = lab.ask(page, "GET", f"bookings?mine=true&since={int(time.time())}")
    assert (booking["starts_at"], booking["ends_at"]) == (noon, noon + 3 * HOUR + HOUR // 2)
    assert [device["uuid"] for device in booking["devices"]] == ["GPU-a0", "GPU-a1"]


def test_what_is_in_the_way_is_told_while_dragging_and_the_next_time_offered(
    page: Page, lab: Lab, complaints: Complaints
) -> None:
    complaints.may_be_refused = True
    noon = _tomorrow()
    lab.book(page, "bo", ["GPU-a1"], noon, 2, "evaluation")
    lab.log_in(page, "wera")
    _timeline(page, lab, noon)
    expect(_row(page, "GPU-a1").locator("[data-booking]")).to_contain_text("bo · evaluation")
    _drag(page, ("GPU-a0", 11.1), ("GPU-a2", 12.9))
    choice = page.get_by_role("status").filter(has_text="3 GPUs")
    expect(choice).to_contain_text(re.compile(r"Conflicts with: bo until \w+ \d+ \w+ 14:00"))
    expect(page.locator(".chosen.blocked")).to_be_visible()
    page.mouse.up()
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.get_by_role("button", name="Choose another time").click()
    sheet = _sheet(page)
    conflicts = sheet.locator("[data-conflicts='1']")
    expect(conflicts).to_contain_text("alpha/1")
    conflicts.get_by_role("button", name=re.compile("Book .* 14:00 instead")).click()
    expect(sheet.locator("[data-reading]")).to_contain_text("14:00 – 16:00")
    sheet.get_by_role("button", name="Book", exact=True).click()
    expect(sheet.locator("[data-state=active]")).to_be_visible()


def test_keys_choose_and_book_and_escape_lets_go(page: Page, lab: Lab) -> None:
    lab.log_in(page, "wera")
    _timeline(page, lab, _tomorrow())
    page.locator(GRID).focus()
    page.keyboard.press("ArrowDown")  # The first key shows where one is.
    for key in ("ArrowDown", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown"):
        page.keyboard.press(key)
    expect(page.get_by_role("status").filter(has_text="2 GPUs")).to_contain_text("45 min")
    page.keyboard.press("Escape")
    expect(page.locator(".chosen")).to_have_count(0)
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    sheet = _sheet(page)
    expect(sheet.get_by_role("heading", name="Book GPUs")).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    # One that was filled in asks first.
    page.locator(GRID).focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    sheet.get_by_label("Title").fill("mine")
    page.keyboard.press("Escape")
    sheet.get_by_role("button", name="Keep editing").click()
    expect(sheet.get_by_label("Title")).to_have_value("mine")
    page.keyboard.press("Escape")
    sheet.get_by_role("button", name="Discard").click()
    expect(sheet).to_have_count(0)


def test_the_form_outlives_the_session_the_connection_and_a_reload(
    page: Page, lab: Lab, complaints: Complaints
) -> None:
    complaints.may_lose_connection = complaints.may_be_refused = True
    lab.log_in(page, "wera")
    show(page, f"{lab.url}?book=gpus.{lab.beta.id}/GPU-b0")
    sheet = _sheet(page)
    sheet.get_by_label("Title").fill("thesis")
    sheet.get_by_label("Until").fill("6h")
    expect(sheet.locator("[data-reading]")).to_contain_text("6 h")
    page.reload()
    expect(sheet.get_by_label("Title")).to_have_value("thesis")
    # The login ends: one logs in again over the form.
    page.context.clear_cookies()
    sheet.get_by_label("Until").fill("7h")
    sheet.get_by_role("button", name="Log in").click()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(sheet.locator("[data-reading]")).to_contain_text("7 h")
    expect(sheet.get_by_label("Title")).to_have_value("thesis")
    # The hub goes away while it is being saved.
    page.route("**/api/v1/bookings", lambda route: route.abort())
    sheet.get_by_role("button", name="Book", exact=True).click()
    expect(sheet.get_by_role("alert")).to_contain_text("Your input is saved")
    page.unroute("**/api/v1/bookings")
    sheet.get_by_role("button", name="Book", exact=True).click()
    expect(sheet.get_by_role("heading", name="thesis")).to_be_visible()


def test_a_change_that_was_kept_does_not_undo_someone_elses(
    page: Page, lab: Lab, complaints: Complaints
) -> None:
    complaints.may_be_refused = True
    noon = _tomorrow()
    booking = lab.book(page, "wera", ["GPU-b1"], noon, 2.002, "later")
    lab.log_in(page, "wera")
    show(page, f"{lab.url}?book=edit.{booking}")
    sheet = _sheet(page)
    expect(sheet.get_by_label("Title")).to_have_value("later")
    sheet.get_by_label("Title").fill("mine")
    told = lab.ask(page, "GET", f"bookings/{booking}")
    lab.ask(page, "PATCH", f"bookings/{booking}", {"title": "theirs", "revision": told["revision"]})
    page.reload()
    expect(sheet.get_by_label("Title")).to_have_value("mine")
    sheet.get_by_role("button", name="Save").click()
    expect(sheet.get_by_role("alert")).to_contain_text("Someone else has changed this")
    sheet.get_by_role("button", name="Load the current version").click()
    expect(sheet.get_by_label("Title")).to_have_value("theirs")
    sheet.get_by_label("Title").fill("ours")
    sheet.get_by_role("button", name="Save").click()
    expect(sheet.get_by_role("heading", name="ours")).to_be_visible()
    # A time that nobody touched keeps its seconds.
    assert lab.ask(page, "GET", f"bookings/{booking}")["ends_at"] == noon + 2 * HOUR + 7


def test_a_form_that_is_opened_first_waits_for_the_zone_and_the_node(page: Page, lab: Lab) -> None:
    noon = _tomorrow()
    lab.log_in(page, "wera")
    hub_zone = lab.ask(page, "GET", "session")["zone"]
    page.add_init_script("localStorage.setItem('gpuherd.zone', 'hub')")
    held: list[Route] = []
    page.route("**/api/v1/session", lambda route: held.append(route))  # noqa: PLW0108 - a method of a list is refused
    page.goto(f"{lab.url}?book=node.{lab.beta.id}@{noon}-{noon + 2 * HOUR}")
    sheet = _sheet(page)
    expect(sheet).to_contain_text("Loading")
    expect(sheet.get_by_label("Until")).to_have_count(0)
    for request in held:
        request.continue_()
    page.unroute("**/api/v1/session")
    start = datetime.fromtimestamp(noon, ZoneInfo(hub_zone)).strftime("%Y-%m-%d %H:%M")
    expect(sheet.get_by_label("From", exact=True)).to_have_value(start)
    expect(sheet.get_by_role("list", name="These GPUs").get_by_role("listitem")).to_have_count(2)
    expect(sheet.locator("[data-reading]")).to_contain_text(start[-5:])
    # A number of weeks can be typed in one's own time.
    sheet.get_by_label("Every week").check()
    weeks = sheet.get_by_label("weeks in total")
    weeks.fill("")
    weeks.press_sequentially("3")
    expect(sheet.locator("[data-reading]")).to_contain_text("3 times")


def test_what_is_not_loaded_yet_is_not_called_free(page: Page, lab: Lab) -> None:
    noon = _tomorrow()
    lab.log_in(page, "wera")
    _timeline(page, lab, noon)
    held: list[Route] = []
    page.route("**/api/v1/timeline?*", lambda route: held.append(route))  # noqa: PLW0108 - a method of a list is refused
    page.get_by_role("button", name="Later").click()
    expect(page.locator("[data-loaded=false]").get_by_text("Loading")).to_be_visible()
    _drag(page, ("GPU-a0", 12.1), ("GPU-a0", 15.9))
    page.mouse.up()
    expect(page.locator(".chosen")).to_have_count(0)
    for request in held:
        request.continue_()
    page.unroute("**/api/v1/timeline?*")
    expect(page.locator("[data-loaded=true]")).to_be_visible()
    _drag(page, ("GPU-a0", 12.1), ("GPU-a0", 15.9))
    expect(page.locator(".chosen")).to_be_visible()
    page.keyboard.press("Escape")


def test_fields_that_cannot_be_taken_say_so_where_they_are(
    page: Page, lab: Lab, complaints: Complaints
) -> None:
    complaints.may_be_refused = True
    lab.log_in(page, "wera")
    show(page, f"{lab.url}?book=any.2.A100")
    sheet = _sheet(page)
    expect(sheet.locator("[data-reading]")).to_contain_text("1 d")
    sheet.get_by_label("Until").fill("soonish")
    expect(sheet.locator("#time-end-hint")).to_contain_text("soonish")
    expect(sheet.get_by_label("Until")).to_have_attribute("aria-invalid", "true")
    # A time that comes twice is asked for, not guessed.
    sheet.get_by_label("From", exact=True).fill("2027-10-31 02:30")
    expect(sheet.locator("#time-start-hint")).to_contain_text("twice")
    sheet.get_by_role("button", name="2027-10-31T02:30+01:00").click()
    expect(sheet.get_by_label("From", exact=True)).to_have_value("2027-10-31T02:30+01:00")


def test_my_bookings_can_be_extended_changed_released_and_cancelled(page: Page, lab: Lab) -> None:
    now, noon = int(time.time()), _tomorrow()
    running = lab.book(page, "wera", ["GPU-b0"], now + 1, 2, "now")
    coming = lab.book(page, "wera", ["GPU-b1"], noon, 2, "later")
    lab.log_in(page, "wera")
    show(page, f"{lab.url}?bookings")
    expect(page).to_have_title(re.compile("^My bookings · "))
    card = page.locator(f"[data-group=running] article[data-booking='{running}']")
    card.get_by_role("button", name="+1 d").click()
    expect(card).to_contain_text(re.compile(r"1 d 1 h left|1 d 2 h left"))
    card.get_by_role("button", name="Release").click()
    card.get_by_role("button", name="Release?").click()
    expect(page.locator(f"[data-group=past] article[data-booking='{running}']")).to_be_visible()
    card = page.locator(f"[data-group=coming] article[data-booking='{coming}']")
    card.get_by_role("link", name="Change").click()
    sheet = _sheet(page)
    expect(sheet.get_by_label("Title")).to_have_value("later")
    sheet.get_by_label("Title").fill("much later")
    sheet.get_by_role("button", name="Save").click()
    expect(sheet.get_by_role("heading", name="much later")).to_be_visible()
    sheet.get_by_role("button", name="Close").click()
    card.get_by_role("button", name="Cancel booking").click()
    card.get_by_role("button", name="Cancel booking?").click()
    expect(card).to_have_count(0)


def test_whoever_has_no_bookings_is_led_to_the_first(page: Page, lab: Lab) -> None:
    lab.log_in(page, "ada")
    show(page, f"{lab.url}?bookings")
    expect(page.get_by_text("You have no bookings.")).to_be_visible()
    expect(page.get_by_text("To book, drag over the timeline or click Book GPUs.")).to_be_visible()


def test_a_slot_is_found_and_booked(page: Page, lab: Lab) -> None:
    lab.book(page, "bo", ["GPU-b0", "GPU-b1"], int(time.time()) + 1, 4, "all of beta")
    lab.log_in(page, "wera")
    _timeline(page, lab, _tomorrow())
    page.get_by_role("button", name="Find a slot").click()
    search = page.get_by_role("region", name="Find a slot")
    search.get_by_label("GPUs").fill("2")
    search.get_by_label("on one node").check()
    search.get_by_role("button", name="Search").click()
    first = search.get_by_role("listitem").first
    expect(first).to_contain_text("now")
    first.get_by_role("link").click()
    expect(_sheet(page).get_by_label("From", exact=True)).to_have_value("now")
    expect(_sheet(page).locator("[data-reading]")).to_contain_text("1 d")


def test_devices_tell_who_has_them_and_who_uses_what_is_booked(page: Page, lab: Lab) -> None:
    booking = lab.book(page, "bo", ["GPU-a2", "GPU-a3"], int(time.time()) + 1, 73, "sweep")
    lab.log_in(page, "wera")
    show(page, lab.url)
    badge = page.locator(f"[data-device='GPU-a3'] [data-booking='{booking}']")
    expect(badge).to_contain_text("bo · 3 d")
    expect(badge).to_contain_text("used by someone else")
    expect(page.locator("[data-device='GPU-a2']")).to_have_attribute("data-state", "booked")
    expect(page.locator("[data-answer=next]")).to_contain_text(re.compile(r"× 2\s+in 3 d"))
    badge.click()
    sheet = _sheet(page)
    expect(sheet.get_by_text("used by someone else")).to_be_visible()
    # It is someone else's: nothing can be done to it but to book the same again.
    expect(sheet.get_by_role("button", name="Release")).to_have_count(0)
    expect(sheet.get_by_role("link", name="Book again")).to_be_visible()


def test_whoever_is_not_logged_in_looks_and_is_led_to_the_login_and_back(page: Page, lab: Lab) -> None:
    noon = _tomorrow()
    lab.book(page, "bo", ["GPU-a1"], noon, 2, "secret plan")
    _timeline(page, lab, noon)
    bar = _row(page, "GPU-a1").locator("[data-booking]")
    expect(bar).to_be_visible()
    expect(page.get_by_text("secret plan")).to_have_count(0)
    _drag(page, ("GPU-a0", 12.1), ("GPU-a0", 13.9))
    page.mouse.up()
    _sheet(page).get_by_role("link", name="Log in").click()
    page.get_by_label("Name", exact=True).fill("wera")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(_sheet(page).locator("[data-reading]")).to_contain_text("12:00 – 14:00")


def test_a_finger_chooses_after_a_long_press_and_scrolls_otherwise(page: Page, lab: Lab) -> None:
    lab.log_in(page, "wera")
    page.set_viewport_size({"width": 390, "height": 844})
    _timeline(page, lab, _tomorrow())
    expect_no_overflow(page, "the timeline on a phone")
    devtools = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        at = [{"x": x, "y": y} for x, y in points]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    start, end = _point(page, "GPU-a0", 12.2), _point(page, "GPU-a1", 15.8)
    touch("touchStart", start)
    expect(page.locator(".chosen")).to_be_visible()
    touch("touchMove", ((start[0] + end[0]) / 2, end[1]))
    touch("touchMove", end)
    touch("touchEnd")
    expect(_sheet(page).locator("[data-reading]")).to_contain_text("12:00 – 16:00")
    expect_no_overflow(page, "the form on a phone")


@pytest.mark.parametrize("place", ["?timeline", "?bookings", "?timeline&book=any", "?timeline&book=show.ID"])
def test_everyone_can_read_what_is_booked(page: Page, lab: Lab, place: str) -> None:
    booking = lab.book(page, "wera", ["GPU-a0", "GPU-a1"], int(time.time()) + 1, 30, "sweep")
    lab.book(page, "bo", ["GPU-a3"], int(time.time()) + 1, 30, "other")
    lab.log_in(page, "wera")
    show(page, lab.url + place.replace("ID", str(booking)))
    ready = {"?timeline": "button[data-booking]", "?bookings": "article"}
    expect(page.locator(ready.get(place, "dialog[open] h2")).first).to_be_visible()
    if "any" in place:
        expect(page.locator("[data-reading] strong")).to_be_visible()
    for theme, width in (("light", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        assert violations(page) == [], f"{place}, {theme}"
