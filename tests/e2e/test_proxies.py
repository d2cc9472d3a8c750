"""The page through the proxies of deploy/, at the root and below a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import Complaints
from e2e.hub_process import HubProcess
from e2e.reports import gpu, report, working
from support.front_doors import FILES, OLD_CADDY_WITH_STAR, front_door, old_front_door

PASSWORD = "correct horse battery"
CONFIG = """
[hub]
public = "read"
tick_seconds = 0.2
trusted_proxies = ["127.0.0.1"]
[login.proxy]
networks = ["127.0.0.1"]
[history]
enabled = false
"""


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """The certificates are of an authority that only the tests know, and whoever looks claims to be someone."""
    return {
        **browser_context_args,
        "ignore_https_errors": True,
        "extra_http_headers": {"X-Remote-User": "mallory", "X_Remote_User": "mallory"},
    }


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, HubProcess]]:
    """Run a hub at the root and one below a path."""
    found = {
        layout: HubProcess(tmp_path_factory.mktemp("hub"), base_path=path, config=CONFIG)
        for layout, path in (("root", "/"), ("subpath", "/gpus/"))
    }
    for hub in found.values():
        hub.administer("account", "create", "ada", "--role", "admin", "--password-file", "-", stdin=PASSWORD)
        hub.launch()
    for hub in found.values():
        hub.wait_until_it_answers()
    yield found
    for hub in found.values():
        hub.kill()


@pytest.mark.parametrize(("proxy", "layout"), [pair for pair in FILES if pair[1] != "login"], ids=str)
def test_the_page_is_live_and_one_logs_in_through_a_proxy(
    proxy: Any, layout: Any, page: Page, hubs: dict[str, HubProcess], tmp_path_factory: pytest.TempPathFactory
) -> None:
    hub = hubs[layout]
    node = hub.join(f"behind-{proxy}")
    requested: list[str] = []
    page.context.on("request", lambda request: requested.append(request.url))
    with front_door(proxy, layout, tmp_path_factory.mktemp(proxy) / layout, hub.url) as door:
        node.report(report([(gpu(0, uuid=f"GPU-{proxy}"), working(0.11))]))
        page.goto(f"{door.url}?gpu=GPU-{proxy}")
        main = page.locator("main")
        expect(main).to_have_attribute("data-live", "true")
        expect(main).to_contain_text("11 %")
        for percent in (47, 83):
            node.report(report([(gpu(0, uuid=f"GPU-{proxy}"), working(percent / 100))]))
            expect(main).to_contain_text(f"{percent} %")
        # Nobody is whom the browser claims to be; the form works, and the cookie is kept.
        page.get_by_role("link", name="Log in").click()
        page.get_by_label("Name", exact=True).fill("ada")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("button", name="ada: account")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="ada: account")).to_be_visible()
        assert requested
        assert [url for url in requested if not url.startswith((door.url, "data:", "blob:"))] == []
        page.goto("about:blank")  # or it complains of a hub that is gone


@pytest.fixture(scope="module")
def old_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Run a hub that takes nobody's word for who someone is: the README's proxies pass on what a browser claims."""
    config = CONFIG.replace('[login.proxy]\nnetworks = ["127.0.0.1"]\n', "")
    assert config != CONFIG
    hub = HubProcess(tmp_path_factory.mktemp("hub"), base_path="/gpus/", config=config)
    hub.administer("account", "create", "ada", "--role", "admin", "--password-file", "-", stdin=PASSWORD)
    hub.start()
    yield hub
    hub.kill()


@pytest.mark.parametrize("proxy", ["nginx", "caddy"])
def test_deep_links_live_changes_and_logins_pass_through_the_old_proxy(
    proxy: Any, page: Page, old_hub: HubProcess, tmp_path: Path
) -> None:
    """The README's nginx block cuts the path off and does not say that the way was HTTPS."""
    node = old_hub.join(f"old-{proxy}")
    device = f"GPU-old-{proxy}"
    port = urlsplit(old_hub.url).port
    assert port is not None
    with old_front_door(proxy, tmp_path / "proxy", port, caddy_site=OLD_CADDY_WITH_STAR) as door:
        node.report(report([(gpu(0, uuid=device), working(0.11))]))
        page.goto(door.url)  # Caddy leads on to /gpus
        main = page.locator("main")
        expect(main).to_have_attribute("data-live", "true")
        page.get_by_role("link", name=f"old-{proxy}").first.click()
        expect(main).to_contain_text("11 %")
        page.reload()  # the address is that of the node
        expect(page.get_by_role("heading", name=f"old-{proxy}")).to_be_visible()
        node.report(report([(gpu(0, uuid=device), working(0.47))]))
        expect(main).to_contain_text("47 %")
        page.get_by_role("link", name="Log in").click()
        page.get_by_label("Name", exact=True).fill("ada")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("button", name="ada: account")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="ada: account")).to_be_visible()
        [cookie] = page.context.cookies()
        assert (cookie["name"], cookie["path"], cookie["secure"]) == ("__Secure-gpuherd", "/gpus", True)
        page.goto("about:blank")  # or it complains of a hub that is gone


def test_the_readmes_caddy_block_passes_one_address_on_and_a_page_that_needs_no_more(
    page: Page, old_hub: HubProcess, tmp_path: Path, complaints: Complaints
) -> None:
    port = urlsplit(old_hub.url).port
    assert port is not None
    old_hub.join("one-page").report(report([(gpu(0, uuid="GPU-one-page"), working(0.11))]))
    with old_front_door("caddy", tmp_path / "proxy", port) as door:
        page.goto(door.url)
        expect(page.get_by_role("heading", name="one-page")).to_be_visible()
        assert urlsplit(page.url)[2:4] == ("/gpus", "one-page")
        expect(page.get_by_text("write a star")).to_be_visible()
        assert page.locator("html").get_attribute("data-reload") == "15"
        page.get_by_role("link", name="Try the live page").click()
        expect(page.get_by_role("heading", name="one-page")).to_be_visible()
        page.goto("about:blank")
        complaints.messages.clear()  # of files that are empty
    with old_front_door("caddy", tmp_path / "star", port, caddy_site=OLD_CADDY_WITH_STAR) as door:
        page.goto(door.url)
        expect(page.locator("main")).to_have_attribute("data-live", "true")
        expect(page.get_by_text("did not arrive")).to_be_hidden()
        page.goto("about:blank")
