"""A hub started from gpuherd.toml, behind nginx, with a directory: all of it real."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from support.nginx import NGINX_ADDRESS, need_nginx, running_nginx
from support.running import PATIENCE_SECONDS, eventually, free_port, running
from support.slapd import BASE, SEARCHER, SEARCHER_PASSWORD, need_slapd, running_slapd


def ask(url: str, content: object = None, **headers: str) -> tuple[int, Any]:
    body = None if content is None else json.dumps(content).encode()
    sent = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, data=body, headers=sent)  # noqa: S310 - our own http address
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError as error:
        return 0, str(error)


def test_login_ways_of_a_configuration_work(tmp_path: Path) -> None:
    need_slapd()
    need_nginx()
    hub = f"http://127.0.0.1:{(port := free_port())}"
    password_file = tmp_path / "ldap-password"
    password_file.write_text(SEARCHER_PASSWORD + "\n")
    password_file.chmod(0o600)
    with running_slapd(tmp_path / "directory") as slapd:
        (tmp_path / "gpuherd.toml").write_text(
            f"""
            [hub]
            state_dir = "{tmp_path / "state"}"
            listen = "127.0.0.1:{port}"
            public = "off"
            trusted_proxies = ["{NGINX_ADDRESS}"]
            [login]
            default_role = "viewer"
            admin_groups = ["ldap:gpu-admins"]
            [login.ldap]
            url = "{slapd.tls_url}"
            tls_ca_file = "{slapd.ca_file}"
            search_base = "ou=people,{BASE}"
            bind_dn = "{SEARCHER}"
            bind_password_file = "ldap-password"  # beside this file
            [login.proxy]
            """
        )
        with (
            running("hub", "--config", str(tmp_path / "gpuherd.toml"), "run", log=tmp_path / "hub.log"),
            running_nginx(tmp_path / "nginx", hub, {"dave": "dave's word"}) as nginx,
        ):
            eventually(lambda: ask(f"{hub}/api/v1/session"), lambda seen: seen[0] == 200)
            status, view = ask(f"{hub}/api/v1/session", {"name": "alice", "password": "alice's password"})
            assert (status, view["account"]["role"]) == (201, "admin")
            basic = "Basic " + base64.b64encode(b"dave:dave's word").decode()
            status, view = ask(f"{nginx}/api/v1/session", Authorization=basic)
            account = view["account"]
            assert (account["name"], account["source"], account["role"]) == ("dave", "proxy", "viewer")
            status, view = ask(f"{hub}/api/v1/session", **{"X-Remote-User": "alice"})
            assert (status, view["account"]) == (200, None)
    log = (tmp_path / "hub.log").read_text()
    assert "alice's password" not in log
    assert SEARCHER_PASSWORD not in log
