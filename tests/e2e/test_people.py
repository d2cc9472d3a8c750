"""People: setting up, logging in and out, one's own account, those of others, and the audit log."""

from __future__ import annotations

import json
import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess, ask
from e2e.places import expect_no_overflow
from e2e.reports import IDLE, gpu, report, working
from e2e.test_accessibility import ONCE_EACH, violations_in
from gpuherd.model.processes import Process

PASSWORD = "correct horse battery"
CONFIG = "[login]\nparallel = 2\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub with one node and three people, below a base path."""
    folder = tmp_path_factory.mktemp("lab")
    hub = HubProcess(folder, base_path="/lab/", config=CONFIG)
    _people(hub, {"ada": "admin", "ben": "member", "eva": "viewer"})
    hub.start()
    node = hub.join("alpha")
    process = Process(pid=77, user="ben", command="python secret.py")
    node.report(report([(gpu(0), working(0.4)), (gpu(1), IDLE)], processes=[(0, process)]))
    yield hub
    hub.kill()


def _people(hub: HubProcess, roles: dict[str, str]) -> None:
    for name, role in roles.items():
        hub.administer("account", "create", name, "--role", role, "--password-file", "-", stdin=PASSWORD)


@pytest.fixture(autouse=True)
def _refusals_are_expected(complaints: Complaints) -> None:
    complaints.may_be_refused = True


def _log_in(page: Page, hub: HubProcess, name: str, where: str = "") -> None:
    """Log in without the form and open the page."""
    answer = page.request.post(f"{hub.url}api/v1/session", data={"name": name, "password": PASSWORD})
    assert answer.status == 201, answer.text()
    page.goto(hub.url + where)
    expect(page.get_by_role("button", name=f"{name}: account")).to_be_visible()


def _fill_form(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Log in", exact=True).click()


# Coming in


def test_the_setup_link_makes_the_first_admin(page: Page, hub: HubProcess, browser: Browser) -> None:
    page.goto(hub.url)
    expect(page.get_by_text("No accounts yet")).to_be_visible()
    expect(page.get_by_role("link", name="Log in")).to_have_count(0)
    code = hub.administer("setup-link").strip().partition("?setup#")[2]
    assert code.startswith("ghc_")
    page.goto(f"{hub.url}?setup#{code}")
    expect(page.get_by_role("heading", name="Set up gpuherd")).to_be_visible()
    # The code is a secret: neither the address nor the history keeps it.
    assert page.url == f"{hub.url}?setup"
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("New password").fill("too short")
    expect(page.get_by_text("1 character more")).to_be_visible()
    create = page.get_by_role("button", name="Create account")
    expect(create).to_be_disabled()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("Repeat password").fill(f"{PASSWORD}?")
    expect(page.get_by_text("do not match yet")).to_be_visible()
    expect(create).to_be_disabled()
    page.get_by_label("Repeat password").fill(PASSWORD)
    create.click()
    expect(page.get_by_role("button", name="ada: account")).to_be_visible()
    assert page.url == hub.url
    expect(page.get_by_role("heading", name="No nodes yet")).to_be_visible()
    expect(page.get_by_text("No accounts yet")).to_have_count(0)
    # From now on others see nothing, and the link is of no use.
    other = browser.new_page()
    other.goto(hub.url)
    expect(other.get_by_role("heading", name="Log in to gpuherd")).to_be_visible()
    other.goto(f"{hub.url}?setup#{code}")
    expect(other.get_by_role("heading", name="This hub is already set up")).to_be_visible()
    other.close()


def test_whoever_logs_in_goes_on_where_they_wanted_to(page: Page, lab: HubProcess) -> None:
    place = f"{lab.url}?gpu=GPU-0"
    page.goto(place)
    expect(page.get_by_role("heading", name="Log in to gpuherd")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    # What password managers look for.
    expect(page.locator("form[method=post] input[autocomplete=username]")).to_have_count(1)
    expect(page.locator("form[method=post] input[autocomplete=current-password]")).to_have_count(1)
    _fill_form(page, "ben", "not the password")
    expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
    expect(page.get_by_label("Name", exact=True)).to_have_value("ben")
    password = page.get_by_label("Password", exact=True)
    expect(password).to_be_focused()
    password.fill(PASSWORD)
    page.get_by_role("button", name="Show the password").click()
    expect(password).to_have_attribute("type", "text")
    password.press("Enter")
    expect(page.locator("main")).to_have_attribute("data-page", "gpu")
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    assert page.url == place
    # One's own command line is one's own to see.
    expect(page.get_by_text("python secret.py")).to_be_visible()


def test_a_form_that_must_wait_says_how_long_and_then_works(page: Page, lab: HubProcess) -> None:
    def refuse(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        body = {"error": {"code": "too_many_attempts", "message": "too many attempts; wait a little"}}
        route.fulfill(status=429, headers={"Retry-After": "2"}, body=json.dumps(body))

    page.goto(lab.url)
    page.route("**/api/v1/session", refuse)
    _fill_form(page, "ben")
    expect(page.get_by_role("alert")).to_have_text("Too many attempts; wait a little.")
    expect(page.get_by_role("button", name=re.compile(r"Wait \d s"))).to_be_disabled()
    page.unroute("**/api/v1/session")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.locator("main")).to_have_attribute("data-live", "true")


def test_no_password_is_asked_for_where_others_could_read_it(page: Page, lab: HubProcess) -> None:
    seen = ask(f"{lab.url}api/v1/session")
    assert seen["password"]["is_taken_here"] is True
    page.route(
        "**/api/v1/session",
        lambda route: route.fulfill(json={**seen, "password": {"is_taken_here": False}}),
    )
    page.goto(lab.url)
    expect(page.get_by_role("alert")).to_contain_text("This connection is not encrypted")
    expect(page.locator("input")).to_have_count(0)
    expect(page.get_by_role("link", name="HTTPS")).to_have_attribute("href", re.compile(r"^https://127"))


def test_single_sign_on_is_offered_and_its_trouble_told(page: Page, lab: HubProcess) -> None:
    seen = ask(f"{lab.url}api/v1/session")
    redirect = {"label": "Example Lab", "url": "api/v1/login/oidc"}
    page.route("**/api/v1/session", lambda route: route.fulfill(json={**seen, "redirect": redirect}))
    page.goto(f"{lab.url}?login&node=x&problem=login_denied")
    expect(page.get_by_role("alert")).to_contain_text("declined")
    link = page.get_by_role("link", name="Continue with Example Lab")
    expect(link).to_have_attribute("href", f"{lab.url}api/v1/login/oidc?return=%2Flab%2F%3Fnode%3Dx")


# Being someone


def test_the_page_knows_who_is_logged_in(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "ben")
    page.evaluate("localStorage.setItem('gpuherd.me', 'someone-else')")
    page.reload()
    page.get_by_role("button", name="Mine", exact=True).click()
    expect(page.get_by_label("Your user name")).to_have_count(0)
    expect(page.locator("article [data-device], [data-device]")).to_have_count(1)
    page.goto(f"{lab.url}?users")
    ben = page.locator('[data-user="ben"]')
    expect(ben).to_contain_text("you")
    expect(page.get_by_role("button", name="mark the row")).to_have_count(0)


# Going out


def test_logging_out_leaves_nothing_in_any_tab(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "ben", "?users")
    second = page.context.new_page()
    second.goto(lab.url)
    expect(second.locator("[data-device]").first).to_be_visible()
    page.get_by_role("button", name="ben: account").click()
    page.get_by_role("button", name="Log out", exact=True).click()
    for tab in (page, second):
        expect(tab.get_by_role("heading", name="Log in to gpuherd")).to_be_visible()
        expect(tab.locator("[data-device]")).to_have_count(0)
        expect(tab.get_by_role("button", name="ben: account")).to_have_count(0)
    assert ask(f"{lab.url}api/v1/session")["account"] is None
    second.close()


def test_a_login_that_ends_is_told_and_takes_nothing_away(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "eva", "?account")
    field = page.get_by_label("Full name")
    field.fill("Eva, half typed")
    lab.administer("account", "password", "eva", "--password-file", "-", stdin=PASSWORD)
    banner = page.get_by_role("status", name="Connection")
    expect(banner).to_contain_text("You are logged out")
    expect(field).to_have_value("Eva, half typed")
    banner.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in again")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("eva")
    expect(dialog.get_by_label("Password", exact=True)).to_be_focused()
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(banner).to_be_empty()
    expect(page.locator("main")).to_have_attribute("data-live", "true")
    expect(field).to_have_value("Eva, half typed")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Eva, half typed")).to_be_visible()


# One's own account


def test_a_token_is_shown_once_works_and_can_be_revoked(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "ben", "?account")
    tokens = page.get_by_role("region", name="API tokens")
    expect(tokens.get_by_text("No tokens.")).to_be_visible()
    tokens.get_by_role("button", name="New token").click()
    expect(tokens.get_by_label("administer")).to_have_count(0)
    tokens.get_by_label("Purpose").fill("a script")
    tokens.get_by_label("book").check()
    tokens.get_by_role("button", name="Create token").click()
    secret = tokens.locator("code").inner_text()
    seen = ask(f"{lab.url}api/v1/session", Authorization=f"Bearer {secret}")
    assert (seen["account"]["name"], seen["scopes"]) == ("ben", ["book", "read"])
    page.reload()
    expect(tokens.get_by_text("a script")).to_be_visible()
    expect(tokens.locator("code")).to_have_count(0)
    tokens.get_by_role("button", name="Revoke a script").click()
    tokens.get_by_role("button", name="Revoke? Revoke a script").click()
    expect(tokens.get_by_text("No tokens.")).to_be_visible()
    assert ask(f"{lab.url}api/v1/session", Authorization=f"Bearer {secret}")["account"] is None


def test_everything_about_oneself_can_be_had_and_erased(page: Page, lab: HubProcess) -> None:
    _people(lab, {"tmp": "member"})
    _log_in(page, lab, "tmp", "?account")
    logins = page.get_by_role("region", name="Logins")
    expect(logins.get_by_text("this browser")).to_have_count(1)
    with page.expect_download() as started:
        page.get_by_role("link", name="Download everything").click()
    told = json.loads(started.value.path().read_text())
    assert told["account"]["name"] == "tmp"
    page.get_by_role("button", name="Erase my account").click()
    erase = page.get_by_role("button", name="Erase account")
    page.get_by_label("Current password").last.fill(PASSWORD)
    expect(erase).to_be_disabled()
    page.get_by_label("Type tmp to confirm").fill("tmp")
    erase.click()
    expect(page.get_by_role("heading", name="Log in to gpuherd")).to_be_visible()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{lab.url}api/v1/session", json.dumps({"name": "tmp", "password": PASSWORD}).encode())


# Those of others


def test_an_admin_makes_changes_and_removes_accounts(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "ada", "?admin")
    page.get_by_role("button", name="Add account").click()
    page.get_by_label("Name", exact=True).fill("hugo")
    page.get_by_role("button", name="Create account").click()
    password = page.locator("form code").inner_text()
    row = page.locator('[data-account="hugo"]')
    expect(row).to_be_visible()
    page.get_by_role("button", name="Close").click()

    page.get_by_label("Search accounts").fill("hug")
    expect(page.locator("[data-account]")).to_have_count(1)
    row.get_by_role("button", name="hugo").click()
    row.get_by_label("Role").select_option("viewer")
    groups = row.get_by_label("Groups")
    groups.fill("vision")
    groups.press("Enter")
    groups.fill("nlp")
    row.get_by_label("Linux users").fill("hv01,")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("Saved.")).to_be_visible()
    expect(row.locator(".row")).to_contain_text("Viewer")
    seen = ask(f"{lab.url}api/v1/session", json.dumps({"name": "hugo", "password": password}).encode())[
        "account"
    ]
    assert (seen["role"], seen["groups"]) == ("viewer", ["nlp", "vision"])
    assert "hv01" in seen["linux_names"]

    row.get_by_label("Disabled").check()
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("disabled", exact=True)).to_be_visible()
    row.get_by_role("button", name="Remove …").click()
    row.get_by_label("Type hugo to confirm").fill("hugo")
    row.get_by_role("button", name="Remove account").click()
    expect(page.get_by_text("No accounts match.")).to_be_visible()


def test_the_last_admin_stays_and_members_have_nothing_to_administer(page: Page, lab: HubProcess) -> None:
    _log_in(page, lab, "ada", "?admin")
    row = page.locator('[data-account="ada"]')
    row.get_by_role("button").click()
    row.get_by_label("Role").select_option("member")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_role("alert")).to_contain_text("admin")
    _log_in(page, lab, "ben", "?admin")
    expect(page.get_by_role("heading", name="Only admins can see this page")).to_be_visible()
    page.get_by_role("button", name="ben: account").click()
    expect(page.get_by_role("link", name="Account")).to_be_visible()
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)


def test_the_audit_log_is_searched_and_read_on(page: Page, lab: HubProcess) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/audit" in request.url else None)
    _log_in(page, lab, "ada", "?admin=audit")
    expect(page.locator('[data-action="login.ok"]').first).to_contain_text("ada")
    search = page.get_by_label("Search the audit log")
    search.fill("command line")
    expect(page.locator('[data-action="login.ok"]')).to_have_count(0)
    expect(page.locator('[data-action="account.create"]').last).to_contain_text("ada")
    assert page.url == f"{lab.url}?admin=audit&q=command+line"

    for _ in range(51):
        made = page.request.post(f"{lab.url}api/v1/account/tokens", data={"title": "x", "scopes": ["read"]})
        page.request.delete(f"{lab.url}api/v1/account/tokens/{made.json()['id']}")
    search.fill("token.")
    tokens = page.locator('[data-action^="token."]')
    expect(tokens).to_have_count(100)
    page.get_by_role("button", name="Show older entries").click()
    expect(tokens.nth(101)).to_be_attached()
    expect(page.get_by_role("button", name="Show older entries")).to_have_count(0)
    assert len(asked) == 4, asked  # at first, for each of two searches, and for what is older
    page.get_by_label("From", exact=True).fill("2001-01-01")
    page.get_by_label("To", exact=True).fill("2001-01-02")
    expect(page.get_by_text("No entries match.")).to_be_visible()


# What everyone sees


def test_a_hub_that_shows_counts_shows_nothing_else(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hub = HubProcess(tmp_path_factory.mktemp("counts"), config='[hub]\npublic = "counts"\n')
    _people(hub, {"ada": "admin"})
    hub.start()
    try:
        hub.join("alpha").report(report([(gpu(0), working(0.4)), (gpu(1), IDLE)]))
        page.goto(hub.url)
        expect(page.get_by_test_id("free-count")).to_have_text("1")
        expect(page.locator("main")).to_contain_text("of 2 GPUs")
        expect(page.locator("main")).not_to_contain_text("alpha")
        expect(page.locator("[data-device], [data-node]")).to_have_count(0)
        page.locator("main").get_by_role("link", name="Log in").click()
        _fill_form(page, "ada")
        expect(page.locator("[data-device]")).to_have_count(2)
        assert page.url == hub.url
    finally:
        hub.kill()


@pytest.mark.parametrize("where", ["login", "account", "admin", "audit"])
def test_everyone_can_read_the_pages_for_people(page: Page, lab: HubProcess, where: str) -> None:
    if where == "login":
        page.goto(f"{lab.url}?login")
        _fill_form(page, "ada", "not the password")
        expect(page.get_by_role("alert")).to_be_visible()
    else:
        _log_in(page, lab, "ada", {"account": "?account", "admin": "?admin", "audit": "?admin=audit"}[where])
    if where == "account":
        page.get_by_role("button", name="ada: account").click()
        expect(page.get_by_role("link", name="Administration")).to_be_visible()
        found = violations_in(page, ONCE_EACH)
        assert found == {}, json.dumps(found, indent=1)
        # The menu lies over the page and may cover a part of any button, so the forms come without it.
        page.keyboard.press("Escape")
        expect(page.get_by_role("link", name="Administration")).to_be_hidden()
        page.get_by_role("button", name="New token").click()
        page.get_by_role("button", name="Change password").click()
        page.get_by_role("button", name="Erase my account").click()
    if where == "admin":
        page.get_by_role("button", name="Add account").click()
        page.locator('[data-account="ben"] button').click()
        expect(page.get_by_label("Groups")).to_be_visible()
    if where == "audit":
        expect(page.get_by_role("row").nth(2)).to_be_visible()
    found = violations_in(page, ONCE_EACH)
    assert found == {}, json.dumps(found, indent=1)
    expect_no_overflow(page, where)
    page.set_viewport_size({"width": 320, "height": 700})
    expect_no_overflow(page, f"{where}, 320")


def test_the_page_says_that_names_are_shown_without_a_login(page: Page, tmp_path: Path) -> None:
    config = '[hub]\npublic = "names"\npublic_networks = ["127.0.0.1"]\n[history]\nenabled = false\n'
    hub = HubProcess(tmp_path / "hub", config=config)
    hub.start()
    try:
        page.goto(hub.url)
        expect(page.get_by_test_id("names-shown")).to_have_text(re.compile("without a login"))
        page.goto("about:blank")
    finally:
        hub.kill()
