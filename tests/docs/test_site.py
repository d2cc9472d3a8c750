"""The documentation's site: it builds without a complaint, holds every page, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.running import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)[^>]*?\ssrc=[\"']?([^\"'\s>]+)"
    r"|<link(?![^>]*rel=[\"']?canonical)[^>]*?\shref=[\"']?([^\"'\s>]+)"
)
_LOADED_BY_STYLE = re.compile(r"(?:@import|url\()\s*[\"']?(https?:|//)[^)\"']*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "docs", project / "docs")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return project / "build/site"


def test_every_page_is_in_the_navigation_once_and_in_the_site(site: Path) -> None:
    text = re.split(r"^nav:", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)[1]
    listed = re.findall(r"[\w/.-]+\.md", text)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages), "every page is in mkdocs.yml under nav, exactly once"
    for page in pages:
        assert (site / page.replace("README.md", "index.md")).with_suffix(".html").is_file(), page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    loaded = {
        target for page in pages for match in _LOADED.findall(page.read_text()) for target in match if target
    }
    assert any(target.endswith(".css") for target in loaded)
    assert [target for target in loaded if re.match(r"(https?:)?//", target)] == []
    for style in site.rglob("*.css"):
        assert _LOADED_BY_STYLE.search(style.read_text()) is None, style.name


def test_the_site_asks_for_no_font_and_no_statistics_of_others() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert settings["theme"]["font"] is False
    assert "analytics" not in settings.get("extra", {})


def test_manual_pages_are_not_part_of_the_site(site: Path) -> None:
    assert not [*site.rglob("*.1")]
