"""Write docs/configuration.md again from the settings. ``make generate`` runs it; a test fails if it is out of date."""

from pathlib import Path

from gpuherd.wiring.reference import config_reference

INTRODUCTION = """\
# Configuration: gpuherd.toml

Everything has a default: with no file at all, `gpuherd up` works. gpuherd reads the file named with `--config`, else
`~/.config/gpuherd/gpuherd.toml`, else `/etc/gpuherd/gpuherd.toml`. What is given on the command line wins over the
file. Secrets are never in it: credentials and join tokens are files of their own.

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


def configuration_page() -> str:
    """Put the page together."""
    return INTRODUCTION + config_reference()


if __name__ == "__main__":
    (Path(__file__).parent.parent / "docs/configuration.md").write_text(
        configuration_page(), encoding="utf-8"
    )
