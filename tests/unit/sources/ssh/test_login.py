"""What the list, gpuherd.toml and the SSH configuration say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncssh
import pytest

from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.settings import SshSettings
from gpuherd.sources.ssh.login import Login, LoginBook
from gpuherd.sources.ssh.places import Progress


class Desk:
    """A home folder with an SSH configuration."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment: dict[str, str] = {}
        (home / ".ssh").mkdir()

    def key(self, name: str, passphrase: str | None = None) -> Path:
        key = asyncssh.generate_private_key("ssh-ed25519")
        file = self.home / ".ssh" / name
        kind = "openssh" if passphrase is None else "pkcs8-pem"
        key.write_private_key(str(file), kind, passphrase=passphrase)
        key.write_public_key(f"{file}.pub")
        return file

    def login(self, config: str = "", target: dict[str, Any] | None = None, **settings: Any) -> Login:
        (self.home / ".ssh" / "config").write_text(config)
        book = LoginBook(
            SshSettings(**settings),
            accepted_keys_file=self.home / "accepted",
            environment=self.environment,
        )
        return book.login(
            Target(**{"name": "gpu01", "address": "gpu01", **(target or {})}), Progress("gpu01")
        )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "hub")
    monkeypatch.setattr("gpuherd.sources.ssh.login.SYSTEM_CONFIG", tmp_path / "system_config")
    return Desk(tmp_path)


CONFIG = "Host gpu01\n  HostName 10.0.0.7\n  Port 2022\n  User conf\n"


def test_nothing_said(desk: Desk) -> None:
    login = desk.login()
    assert (login.user, login.host, login.port, login.hops) == ("hub", "gpu01", 22, ())
    assert login.where == "hub@gpu01"


def test_precedence(desk: Desk) -> None:
    login = desk.login(CONFIG)
    assert (login.user, login.host, login.port) == ("conf", "10.0.0.7", 2022)
    login = desk.login(CONFIG, user="toml", port=2023)
    assert (login.user, login.host, login.port) == ("toml", "10.0.0.7", 2023)
    login = desk.login(CONFIG, {"user": "list", "port": 2024}, user="toml", port=2023)
    assert (login.user, login.host, login.port) == ("list", "10.0.0.7", 2024)


def test_the_users_configuration_comes_before_the_systems(desk: Desk) -> None:
    (desk.home / "system_config").write_text("Host *\n  User system\n  Port 99\n")
    login = desk.login("Host gpu01\n  User mine\n")
    assert (login.user, login.port) == ("mine", 99)


def test_a_named_configuration_is_the_only_one(desk: Desk) -> None:
    other = desk.home / "other"
    other.write_text("Host gpu01\n  User other\n")
    assert desk.login(CONFIG, config_file=other).port == 22
    with pytest.raises(ContactFailed, match="does not exist") as failed:
        desk.login(CONFIG, config_file=desk.home / "absent")
    assert failed.value.code == "ssh_config"


def test_match_final_blocks_count(desk: Desk) -> None:
    assert desk.login("Match final host gpu01\n  User last\n").user == "last"


def test_a_configuration_that_makes_no_sense(desk: Desk) -> None:
    with pytest.raises(ContactFailed, match="config line 1") as failed:
        desk.login("Port many\n")
    assert failed.value.code == "ssh_config"
    assert failed.value.needs_person


def test_which_keys(desk: Desk) -> None:
    first, second = desk.key("id_ed25519"), desk.key("work")
    assert [identity.file for identity in desk.login().identities] == [first]
    login = desk.login(f"IdentityFile {second}\nIdentityFile ~/.ssh/none-there\n")
    assert [identity.file for identity in login.identities] == [second]
    assert not login.is_only_these
    login = desk.login(f"IdentityFile {second}\n", key_files=(Path("~/.ssh/id_ed25519"),))
    assert [identity.file for identity in login.identities] == [first]
    assert login.is_only_these
    login = desk.login(target={"key_file": str(second)}, key_files=(first,))
    assert [identity.file for identity in login.identities] == [second]
    assert desk.login("IdentityFile none\n").identities == ()


def test_what_is_wrong_with_a_key_file(desk: Desk) -> None:
    locked = desk.key("locked", "secret")
    public = desk.home / ".ssh" / "locked.pub"
    (desk.home / "nonsense").write_text("nonsense")
    named = (locked, desk.home / "absent", desk.home / "nonsense", public)
    troubles = [identity.trouble for identity in desk.login(key_files=named).identities]
    assert "protected by a passphrase" in troubles[0]
    assert troubles[1] == "no such file"
    assert "not a private key" in troubles[2]
    assert "is a public key" in troubles[3]


def test_a_key_file_that_changes_is_read_again(desk: Desk) -> None:
    book = LoginBook(
        SshSettings(key_files=(desk.home / ".ssh" / "id",)),
        accepted_keys_file=desk.home / "accepted",
        environment={},
    )
    target, progress = Target(name="a", address="a"), Progress("a")
    assert book.login(target, progress).identities[0].key is None
    desk.key("id")
    former = book.login(target, progress).identities[0].key
    assert former is not None
    assert book.login(target, progress).identities[0].key is former


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ("", "/run/agent"),
        ("IdentityAgent none\n", ""),
        ("IdentityAgent SSH_AUTH_SOCK\n", "/run/agent"),
        ("IdentityAgent $OTHER\n", "/run/other"),
        ("IdentityAgent /run/named\n", "/run/named"),
        ("IdentityAgent ~/named\n", "{home}/named"),
    ],
)
def test_which_agent(desk: Desk, config: str, path: str) -> None:
    desk.environment.update({"SSH_AUTH_SOCK": "/run/agent", "OTHER": "/run/other"})
    assert desk.login(config).agent_path == path.format(home=desk.home)


def hops(login: Login) -> list[str]:
    return [hop.where for hop in login.hops]


def test_jump_hosts(desk: Desk) -> None:
    config = (
        "Host gpu*\n  ProxyJump one\nHost one\n  HostName 10.0.0.1\n  User jumper\n  ProxyJump zero\n"
        "Host zero\n  ProxyJump none\n"
    )
    assert hops(desk.login(config)) == ["hub@zero", "jumper@10.0.0.1"]
    assert hops(desk.login(config, {"proxy_jump": "none"})) == []
    assert hops(desk.login("", {"proxy_jump": "a@one:24, ssh://b@two:25,[::1]:26"})) == [
        "a@one:24",
        "b@two:25",
        "hub@::1:26",
    ]
    # Neither user nor port of the nodes is a jump host's.
    assert hops(desk.login(config, user="node", port=2222)) == ["hub@zero", "jumper@10.0.0.1"]


def test_keys_of_jump_hosts(desk: Desk) -> None:
    nodes, jumps = desk.key("nodes"), desk.key("jumps")
    login = desk.login("", {"proxy_jump": "one"}, key_files=(nodes,))
    assert [identity.file for identity in login.hops[0].identities] == [nodes]
    login = desk.login(f"Host one\n  IdentityFile {jumps}\n", {"proxy_jump": "one"}, key_files=(nodes,))
    assert [identity.file for identity in login.hops[0].identities] == [jumps]
    assert [identity.file for identity in login.identities] == [nodes]


@pytest.mark.parametrize("jump", ["user@", "host:0", "host:99999", "host:ssh", ","])
def test_jump_hosts_that_make_no_sense(desk: Desk, jump: str) -> None:
    with pytest.raises(ContactFailed, match="user@host:port") as failed:
        desk.login("", {"proxy_jump": jump})
    assert failed.value.code == "ssh_config"


def test_jumping_in_circles(desk: Desk) -> None:
    with pytest.raises(ContactFailed, match="in a loop"):
        desk.login("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n", {"address": "a"})


def test_known_hosts_of_the_configuration(desk: Desk) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    line = " ".join(key.export_public_key().decode().split()[:2])
    (desk.home / "mine").write_text(f"gpu01 {line}\n")
    assert desk.login().known.own == ()
    assert desk.login("UserKnownHostsFile ~/mine\n").known.own == (key,)
    assert desk.login("UserKnownHostsFile %d/mine\n").known.own == (key,)
    assert desk.login(known_hosts_file=desk.home / "mine").known.own == (key,)
    (desk.home / "accepted").write_text(f"gpu01 {line}\n")
    assert desk.login("UserKnownHostsFile /dev/null\n").known.own == (key,)


@pytest.mark.parametrize(
    "target",
    [
        {"address": "-oProxyCommand=x"},
        {"address": "gpu01 --evil"},
        {"address": "$(reboot)"},
        {"address": "gpu01", "user": "-l"},
        {"address": "gpu01", "user": "a b"},
    ],
)
def test_names_that_could_be_taken_for_something_else(desk: Desk, target: dict[str, Any]) -> None:
    with pytest.raises(ContactFailed, match=r"correct hosts\.txt:3") as failed:
        desk.login("", {**target, "place": "hosts.txt:3"})
    assert failed.value.code == "ssh_config"


@pytest.mark.parametrize("address", ["gpu01", "10.0.0.1", "fe80::1%eth0", "[::1]", "a-b_c.example"])
def test_names_of_all_kinds(desk: Desk, address: str) -> None:
    assert desk.login("", {"address": address, "user": "DOMAIN\\user"}).user == "DOMAIN\\user"
