"""An address with nothing behind it: a page for people, JSON for programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.page_files import PageFiles


def ask(folder: Path, accept: bytes, method: str = "GET") -> tuple[int, bytes, str]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"method": method, "headers": [(b"accept", accept)]}
    asyncio.run(PageFiles(folder, "/gpus").serve(scope, send, "/nothing"))
    start, body = sent
    return start["status"], dict(start["headers"])[b"content-type"], body["body"].decode()


def test_people_get_a_page_with_a_way_back(tmp_path: Path) -> None:
    status, media_type, page = ask(tmp_path, b"text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, media_type) == (404, b"text/html; charset=utf-8")
    assert '<base href="/gpus/">' in page
    assert '<a href=".">Go to the herd</a>' in page


@pytest.mark.parametrize(
    ("accept", "method"), [(b"*/*", "GET"), (b"application/json", "GET"), (b"text/html", "POST")]
)
def test_programs_get_json(tmp_path: Path, accept: bytes, method: str) -> None:
    with pytest.raises(HttpError) as caught:
        ask(tmp_path, accept, method)
    assert caught.value.status == 404
