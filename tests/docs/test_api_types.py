"""The page's TypeScript types are those of the hub's OpenAPI document."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from support.running import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


def test_the_types_of_the_page_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuherd.api.openapi"],
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    first_line = (ROOT / "web" / "src" / "lib" / "api.d.ts").read_text().split("\n", 1)[0]
    assert hashlib.sha256(done.stdout).hexdigest() in first_line, (
        "the API has changed since web/src/lib/api.d.ts was written; write it again with: make generate"
    )
