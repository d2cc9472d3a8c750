"""A bad configuration is refused with file, line, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from gpuherd.agent.settings import AgentSettings
from gpuherd.api.settings import HubSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.config import PLACED_KEYS, default_config_files, default_state_dir, load, read_config


def test_no_file_at_all_is_good() -> None:
    config = read_config("", "nothing")
    assert config.hub.listen == "127.0.0.1:8470"
    assert config.agent.collectors == ("nvml", "nvidia_smi", "amd_smi", "rocm_smi")


def test_the_command_line_wins_and_none_does_not() -> None:
    text = '[hub]\nlisten = "127.0.0.1:1"\nbase_path = "/a/"\n'
    config = read_config(text, "f", {"hub": {"listen": "127.0.0.1:2", "base_path": None}})
    assert (config.hub.listen, config.hub.base_path) == ("127.0.0.1:2", "/a/")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[hub]\n\nlistn = "x"', 'f.toml:3: hub.listn: unknown key; did you mean "listen"?'),
        ("[hbu]\n", 'f.toml:1: hbu: unknown key; did you mean "hub"?'),
        ("[hub]\nzzz = 1", "f.toml:2: hub.zzz: unknown key; known here: state_dir, listen,"),
        (
            '[availability]\nbusy_memory = "x"',
            "f.toml:2: availability.busy_memory: expected `float`, got `str`",
        ),
        ("[availability]\nbusy_memory = 1.5", "f.toml:2: availability.busy_memory: expected `float` <= 1.0"),
        ('[agent]\ncommand_lines = "all"', "f.toml:2: agent.command_lines: invalid enum value 'all'"),
        ('[hub]\nallowed_hosts = ["a", 3]', "f.toml:2: hub.allowed_hosts[1]: expected `str`, got `int`"),
        ("hub = 3", "f.toml:1: hub: expected `object`, got `int`"),
        ("[hub", "f.toml: is not valid TOML"),
        ('[hub]\ntrusted_proxies = ["x"]', 'f.toml:2: hub.trusted_proxies: "x" is not a network'),
        ('[hub]\nlisten = "here"', 'f.toml:2: hub.listen: "here" is not an IP address with a port'),
        (
            '[[nodes]]\nhosts = ["a"]\nreach = { by = "ssh", usr = "x" }',
            'f.toml:3: nodes[0].reach.usr: unknown key; did you mean "user"?',
        ),
        (
            '[[nodes]]\nhosts = ["a"]\n[nodes.reach]\nby = "sssh"',
            "f.toml:4: nodes[0].reach.by: invalid value 'sssh'; known: ssh, pull, node_info, xmlrpc",
        ),
        (
            '[[nodes]]\nhosts = ["a"]\nreach = { by = "ssh" }\n[[nodes]]\nhosts = ["b"]\n[nodes.reach]\n'  # noqa: ISC004
            'by = "ssh"\ninterval_seconds = "x"',
            "f.toml:8: nodes[1].reach.interval_seconds: expected `float`, got `str`",
        ),
        ('[[nodes]]\nhosts = ["a"]', "f.toml:1: nodes[0].reach: is missing"),
        ('[[nodes]]\nreach = { by = "ssh" }', "f.toml:1: nodes[0]: set either hosts = […] or find = {…}"),
        (
            '[[nodes]]\nreach = { by = "ssh" }\nhosts = ["a"]\nfind = { in = "consul", url = "u" }',
            "f.toml:1: nodes[0]: set either",
        ),
        (
            '[[nodes]]\nreach = { by = "ssh" }\nfind = { in = "consul" }',
            "f.toml:3: nodes[0].find.url: is missing",
        ),
        (
            '[legacy.gpustat]\nlisten = "127.0.0.1:1"\nnetwork = ["a"]',
            'f.toml:3: legacy.gpustat.network: unknown key; did you mean "networks"?',
        ),
        (
            '[legacy.gpustat]\nlisten = "127.0.0.1:1"\nnetworks = []',
            "f.toml:3: legacy.gpustat.networks: expected `array` of length >= 1",
        ),
        ('folder = "x"', "f.toml:1: folder: unknown key; a watched folder is a [[folders]] table"),
        ("[hub]\n[source]\n", "f.toml:2: source: unknown key; known here: hub, login, privacy, bookings,"),
        (
            '[[nodes]]\nreach.by = "ssh"\nhosts = [\n  "a",  # "no"\n  7,\n]',
            "f.toml:5: nodes[0].hosts[1]: expected `str`, got `int`",
        ),
        (
            '[[nodes]]\nhosts = ["a"]\nreach = { by = "ssh" }\n[[nodes]]\nreach = { by = "ssh" }',
            "f.toml:4: nodes[1]: set either hosts",
        ),
        ('[display.nodes]\n"gpu.1" = 3', "f.toml:2: display.nodes.gpu.1: expected `str`"),
        (
            '[[folders]]\npath = "a"\n\n[[folders]]\npaht = "b"',
            "f.toml:5: folders[1].paht: unknown key; did you",
        ),
        ('[hub]\nbase_path = "gpus"', 'f.toml:2: hub.base_path: "gpus" is not an absolute path'),
    ],
)
def test_a_bad_file_is_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(Misconfigured) as error:
        read_config(text, "f.toml")
    assert str(error.value).startswith(complaint)


def test_a_hub_may_listen_everywhere() -> None:
    assert read_config('[hub]\nlisten = "0.0.0.0:80"\npublic = "read"', "f").hub.address.port == 80


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="there is no such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(Misconfigured, match=r"is not UTF-8 text \(byte 5\)"):
        load(tmp_path / "latin.toml")
    with pytest.raises(Misconfigured, match="cannot be read"):
        load(tmp_path)


def test_paths_may_start_at_home() -> None:
    assert read_config('[hub]\nstate_dir = "~/herd"', "f").hub.state_dir == Path.home() / "herd"


def test_relative_paths_begin_where_the_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gpuherd.toml"
    file.write_text(
        '[agent]\nlisten_secret_file = "secret"\ntls_ca_file = "/etc/ca.pem"\njoin_token_file = "-"\n'
        '[hub]\nstate_dir = "state"\n'
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    config = load(Path("../gpuherd.toml"), {"agent": {"node_info_password_file": "here"}})
    assert Path(config.agent.listen_secret_file or "").resolve() == tmp_path / "secret"
    assert config.hub.state_dir.resolve() == tmp_path / "state"
    assert config.agent.tls_ca_file == "/etc/ca.pem"
    assert config.agent.join_token_file == "-", "standard input"
    assert config.agent.node_info_password_file == "here", "the command line means the folder one is in"


@pytest.mark.parametrize(("table", "settings"), [("agent", AgentSettings), ("hub", HubSettings)])
def test_every_key_that_names_a_file_begins_where_the_file_lies(table: str, settings: type[Struct]) -> None:
    ends = ("_file", "_dir", "_key", "_certificate")
    assert {key for key in settings.__struct_fields__ if key.endswith(ends)} == PLACED_KEYS[table]


def test_a_user_whom_the_system_does_not_know_needs_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that a container, or systemd with DynamicUser=, makes up."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("os.geteuid", lambda: 61_184)
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert default_state_dir() == Path("/.local/state/gpuherd")
    assert default_config_files()[-1] == Path("/etc/gpuherd/gpuherd.toml")


def test_the_system_s_file_is_about_the_system_s_folder_whoever_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, own = tmp_path / "etc/gpuherd.toml", tmp_path / "own.toml"
    system.parent.mkdir()
    for file in (system, own):
        file.write_text('[hub]\nbase_path = "/gpus/"\n')
    monkeypatch.setattr("gpuherd.wiring.config.SYSTEM_CONFIG", system)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert load().hub.state_dir == Path("/var/lib/gpuherd")
    assert load(own).hub.state_dir == tmp_path / "mine/gpuherd"
    assert load(None, {"hub": {"state_dir": "/srv/mine"}}).hub.state_dir == Path("/srv/mine")
