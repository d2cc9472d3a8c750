"""Write again what the documentation has from the code: references of settings, commands and API, manual pages.

``make generate`` runs it (``python -m scripts.write_docs``); a test fails if a page is out of date.
"""

from __future__ import annotations

from pathlib import Path

from scripts.api_reference import api_page
from scripts.cli_reference import cli_page
from scripts.man_pages import man_pages

from gpuherd.wiring.reference import config_reference

__all__ = ["generated_pages", "write_pages"]

ROOT = Path(__file__).parent.parent

INTRODUCTION = """\
# Configuration: gpuherd.toml

Everything has a default: `gpuherd up` works without any file. gpuherd reads the file given with `--config`, otherwise
`~/.config/gpuherd/gpuherd.toml`, otherwise `/etc/gpuherd/gpuherd.toml`. Options on the command line override the file.
Secrets are never in this file: credentials and join tokens are separate files. Relative paths start at its folder.

`gpuherd config check [FILE]` checks a file. If a key is unknown, a type is wrong or a combination is impossible, hub
and agent do not start and print the file, the line, the key and the remedy:

```console
$ gpuherd config check gpuherd.toml
gpuherd: gpuherd.toml:2: hub.listn: unknown key; did you mean "listen"?
```

A hub that everyone in the lab can see, under its own path, and that is stricter about idle GPUs:

```toml
[hub]
listen = "0.0.0.0:8470"
public = "read"
base_path = "/gpus/"
allowed_hosts = ["gpus.example.org"]

[availability]
idle_window_seconds = 300
```

A node that reports to it, but sends only the program's name of each process:

```toml
[agent]
hub_url = "https://gpus.example.org/gpus"
command_lines = "program"
```

`make generate` writes this page from the settings in the code; `gpuherd config reference` prints it.

"""


def generated_pages() -> dict[str, str]:
    """Give every generated page by its path below the root."""
    return {
        "docs/configuration.md": INTRODUCTION + config_reference(),
        "docs/reference/cli.md": cli_page(),
        "docs/reference/api.md": api_page(),
        **{f"docs/man/{name}": page for name, page in man_pages().items()},
    }


def write_pages(root: Path = ROOT) -> None:
    """Write them all; manual pages of commands that are gone are removed."""
    pages = generated_pages()
    for path, text in pages.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in (root / "docs/man").glob("*.1"):
        if f"docs/man/{file.name}" not in pages:
            file.unlink()


if __name__ == "__main__":
    write_pages()
