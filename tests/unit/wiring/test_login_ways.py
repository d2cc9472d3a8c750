"""Login ways as gpuherd.toml names them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuherd.auth.ways import LoginWays
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.catalog import LOGIN_WAYS
from gpuherd.wiring.checking import check_config
from gpuherd.wiring.config import read_config
from gpuherd.wiring.outfit import configured_ways

PROXY = '[login.proxy]\nnetworks = ["10.0.0.5"]\n'
OIDC = '[login.oidc]\nissuer = "https://sso.example.org"\nclient_id = "hub"\n'


def ways(text: str, folder: Path) -> LoginWays:
    return configured_ways(read_config(text, "gpuherd.toml", folder=folder))


def test_nothing_is_there_unless_asked_for(tmp_path: Path) -> None:
    assert ways("", tmp_path) == LoginWays()


def test_each_table_makes_its_way(tmp_path: Path) -> None:
    pytest.importorskip("joserfc")
    made = ways(PROXY + OIDC, tmp_path)

    assert made.passwords == ()
    assert made.redirect is not None
    assert made.redirect.label == "single sign-on"
    assert made.header is not None
    assert made.header.vouched([(b"x-remote-user", b"alice")], "10.0.0.5") is not None


def test_directory_is_asked_after_pam(tmp_path: Path) -> None:
    pytest.importorskip("bonsai")
    pytest.importorskip("pam")
    if not Path("/etc/pam.d/login").is_file():
        pytest.skip("no PAM service to name")
    text = (
        '[login.ldap]\nurl = "ldaps://ldap.example.org"\nsearch_base = "dc=example"\n'
        '[login.pam]\nservice = "login"\n'
    )

    assert [way.name for way in ways(text, tmp_path).passwords] == ["pam", "ldap"]


def test_files_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    pytest.importorskip("joserfc")
    (tmp_path / "secret").write_text("q8!fj2 0s")
    (tmp_path / "secret").chmod(0o600)

    assert ways(OIDC + 'client_secret_file = "secret"\n', tmp_path).redirect is not None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[login.proxy]\n", r"gpuherd\.toml.*login\.proxy\.networks: is missing"),
        (
            OIDC + 'client_secret_file = "nowhere"\n',
            r"gpuherd\.toml:4: login\.oidc\.client_secret_file: cannot read",
        ),
        (OIDC.replace("https", "http"), r"gpuherd\.toml:2: login\.oidc\.issuer"),
        (
            '[login.ldap]\nurl = "ldap://ldap.example.org"\nsearch_base = "dc=x"\n',
            r"gpuherd\.toml:2: login\.ldap\.url",
        ),
        ('[login.pam]\nservice = "gpuherd-nowhere"\n', r"gpuherd\.toml:2: login\.pam\.service"),
        ('[login.pam]\nservice = "../shadow"\n', r"gpuherd\.toml:2: login\.pam\.service"),
        ("[login.kerberos]\n", r"login\.kerberos: unknown key"),
        ('[login.oidc]\nclient_id = "hub"\n', r"login\.oidc.*issuer"),
    ],
)
def test_complaints_name_the_line_and_the_key(tmp_path: Path, text: str, complaint: str) -> None:
    for package in ("joserfc", "bonsai", "pam"):
        pytest.importorskip(package)

    with pytest.raises(Misconfigured, match=complaint):
        check_config(read_config(text, "gpuherd.toml", folder=tmp_path))


@pytest.mark.parametrize("key", ["admin_groups", "member_groups"])
@pytest.mark.parametrize("group", ["wheel", "ldap:wheel", "oidc", ":wheel", "OIDC:wheel"])
def test_with_two_services_a_group_says_whose_it_is(tmp_path: Path, key: str, group: str) -> None:
    pytest.importorskip("joserfc")
    text = f'[login]\n{key} = ["oidc:wheel", "{group}"]\n{PROXY}{OIDC}'

    with pytest.raises(
        Misconfigured, match=rf'gpuherd\.toml:2: login\.{key}: .*"oidc:{group}" or "proxy:{group}"'
    ):
        check_config(read_config(text, "gpuherd.toml", folder=tmp_path))


@pytest.mark.parametrize("services", [PROXY + OIDC, OIDC, PROXY])
def test_group_that_says_whose_it_is_can_be_used(tmp_path: Path, services: str) -> None:
    pytest.importorskip("joserfc")
    text = '[login]\nadmin_groups = ["oidc:wheel"]\nmember_groups = ["proxy:staff"]\n' + services
    ways(text, tmp_path)


def test_with_one_service_a_group_is_that_ones(tmp_path: Path) -> None:
    ways('[login]\nadmin_groups = ["wheel"]\n' + PROXY, tmp_path)


def test_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    monkeypatch.delitem(sys.modules, "gpuherd.auth.oidc", raising=False)
    monkeypatch.delitem(sys.modules, "gpuherd.auth.oidc_provider", raising=False)
    monkeypatch.delitem(sys.modules, "gpuherd.auth.oidc_token", raising=False)

    with pytest.raises(Misconfigured, match=r"login\.oidc: needs the package joserfc.*gpuherd\[oidc\]"):
        ways(OIDC, tmp_path)


def test_ways_that_are_not_used_are_not_imported() -> None:
    code = (
        "import sys; from pathlib import Path; from gpuherd.auth.settings import LoginSettings; "
        "from gpuherd.wiring.login_ways import login_ways; "
        "login_ways(LoginSettings(), trusted_proxies=(), folder=Path()); "
        "print(sorted({'joserfc', 'bonsai', 'pam', 'gpuherd.auth.oidc', 'gpuherd.auth.pam'} & sys.modules.keys()))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert printed.stdout.strip() == "[]"
    assert LOGIN_WAYS.keys() == {"pam", "ldap", "oidc", "proxy"}
