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

Everything has a default: with no file at all, `gpuherd up` works. gpuherd reads the file named with `--config`, else
`~/.config/gpuherd/gpuherd.toml`, else `/etc/gpuherd/gpuherd.toml`. What is given on the command line wins over the
file. Secrets are never in it: credentials and join tokens are files of their own. Relative paths begin at the folder in
which the file lies.

`gpuherd config check [FILE]` says whether a file can be used. An unknown key, a wrong type or an impossible
combination stops the start with the file, the line, the key and the remedy:

```console
$ gpuherd config check gpuherd.toml
gpuherd: gpuherd.toml:2: hub.listn: unknown key; did you mean "listen"?
```

A hub that everyone in the lab may look at, below a path of its own, and stricter about idle GPUs:

```toml
[hub]
listen = "0.0.0.0:8470"
public = "read"
base_path = "/gpus/"
allowed_hosts = ["gpus.example.org"]

[availability]
idle_window_seconds = 300
```

A node that reports to it and keeps command lines to itself:

```toml
[agent]
hub_url = "https://gpus.example.org/gpus"
command_lines = "program"
```

This page is written by `make generate` from the settings themselves (`gpuherd config reference` prints it).

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
