"""The proxy examples of deploy/ in front of a hub: the very files, with other names, ports and certificates."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest

from support.authority import Authority, Certificate
from support.running import PATIENCE_SECONDS, free_port

__all__ = [
    "OLD_CADDY_SITE",
    "OLD_CADDY_WITH_STAR",
    "Answer",
    "FrontDoor",
    "Layout",
    "ProxyName",
    "front_door",
    "old_front_door",
    "proxy_site",
]

ROOT = Path(__file__).parents[2]
ProxyName = Literal["nginx", "caddy"]
Layout = Literal["root", "subpath", "login"]

FILES: dict[tuple[ProxyName, Layout], str] = {
    ("nginx", "root"): "deploy/nginx/gpuherd.conf",
    ("nginx", "subpath"): "deploy/nginx/gpuherd-subpath.conf",
    ("nginx", "login"): "deploy/nginx/gpuherd-login.conf",
    ("caddy", "root"): "deploy/caddy/Caddyfile",
    ("caddy", "subpath"): "deploy/caddy/Caddyfile.subpath",
    ("caddy", "login"): "deploy/caddy/Caddyfile.login",
}
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

_NGINX_MAIN = """\
user {user};
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr info;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include {folder}/site.conf;
}}
"""
_CADDY_GLOBALS = """\
{{
	admin off
	http_port {http_port}
	https_port {port}
	default_bind 127.0.0.1
}}
"""


# What the XML-RPC monitor's README has, but for the port.
_OLD_NGINX_BLOCK = """\
    location /gpus/ {
        auth_basic off;
        proxy_pass http://localhost:8042/;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header Host $http_host;
        proxy_http_version 1.1;
        proxy_redirect off;
        proxy_buffering off;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
        proxy_read_timeout 86400;
    }
"""
OLD_CADDY_SITE = """\
location example.com {
    redir /gpus/ /gpus
    reverse_proxy /gpus localhost:8042
}
"""
# Caddy 2 passes on exactly /gpus of the README's block; with the star, all below it.
OLD_CADDY_WITH_STAR = OLD_CADDY_SITE.replace("/gpus localhost:", "/gpus* localhost:")


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """Read the body."""
        return json.loads(self.body)


_CADDY_COMMAND = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"]


class FrontDoor:
    """A proxy that stands before a hub."""

    def __init__(self, port: int, http_port: int, base_path: str, authority_file: Path) -> None:
        self.url = f"https://localhost:{port}{base_path}"
        self.http_url = f"http://localhost:{http_port}{base_path}"
        self.base_path = base_path
        self.authority_file = authority_file
        self.tls = ssl.create_default_context(cafile=str(authority_file))

    @contextmanager
    def asked(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        url: str | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """GET, or POST if there is a body; redirects are not followed. ``path`` is below the base path or absolute."""
        parts = urlsplit(url or self.url)
        assert parts.hostname is not None
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=PATIENCE_SECONDS, context=self.tls
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_SECONDS)
        )
        target = path if path.startswith("/") else parts.path + path
        try:
            connection.request("GET" if body is None else "POST", target, body, dict(headers or {}))
            yield connection.getresponse()
        finally:
            connection.close()

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        url: str | None = None,
    ) -> Answer:
        """As ``asked``, all at once."""
        with self.asked(path, headers, body=body, url=url) as response:
            return Answer(response.status, response.headers, response.read())

    def account(self, headers: Mapping[str, str] | None = None) -> str | None:
        """Tell as whom the hub sees a request."""
        answer = self.ask("api/v1/session", headers)
        assert answer.status == 200, answer
        account = answer.json()["account"]
        return None if account is None else str(account["name"])


@contextmanager
def front_door(
    proxy: ProxyName, layout: Layout, folder: Path, hub_url: str, passwords: Mapping[str, str] | None = None
) -> Iterator[FrontDoor]:
    """Run a proxy before a hub until the block ends. ``passwords`` are those of the layout with a login."""
    text = (ROOT / FILES[proxy, layout]).read_text()
    write = _nginx if proxy == "nginx" else _caddy
    hub = urlsplit(hub_url)

    def command(ports: tuple[int, int], certificate: Certificate) -> list[str]:
        return write(folder, text, hub.netloc, ports, certificate, passwords or {})

    with _running(proxy, folder, command, hub.path) as door:
        yield door


@contextmanager
def old_front_door(
    proxy: ProxyName, folder: Path, hub_port: int, *, caddy_site: str = OLD_CADDY_SITE
) -> Iterator[FrontDoor]:
    """Run a proxy as the XML-RPC monitor's README has it before a hub, over HTTPS, until the block ends."""

    def command(ports: tuple[int, int], certificate: Certificate) -> list[str]:
        if proxy == "nginx":
            block = _swapped(_OLD_NGINX_BLOCK, {"localhost:8042": f"localhost:{hub_port}"})
            (folder / "site.conf").write_text(
                f"server {{ listen 127.0.0.1:{ports[1]}; return 308 https://localhost:{ports[0]}$request_uri; }}\n"
                f"server {{\n    listen 127.0.0.1:{ports[0]} ssl;\n    server_name localhost;\n"
                f"    ssl_certificate {certificate.file};\n    ssl_certificate_key {certificate.key};\n{block}}}\n"
            )
            return _nginx_command(folder)
        site = _swapped(
            caddy_site,
            {
                "location example.com {": f"location localhost {{\n\ttls {certificate.file} {certificate.key}",
                "localhost:8042": f"localhost:{hub_port}",
            },
        )
        (folder / "Caddyfile").write_text(_CADDY_GLOBALS.format(port=ports[0], http_port=ports[1]) + site)
        return _CADDY_COMMAND

    with _running(proxy, folder, command, "/gpus/") as door:
        yield door


@contextmanager
def _running(
    proxy: ProxyName,
    folder: Path,
    write: Callable[[tuple[int, int], Certificate], list[str]],
    base_path: str,
) -> Iterator[FrontDoor]:
    """Run a proxy; ``write`` writes its configuration into the folder and gives its arguments."""
    program = shutil.which(proxy, path=_PATH)
    if program is None or shutil.which("openssl") is None:
        pytest.skip(f"no {proxy} or no openssl: run scripts/provision")
    folder.mkdir()
    authority = Authority(folder / "authority")
    port, http_port = free_port(), free_port()
    command = write((port, http_port), authority.issue("DNS:localhost"))
    environment = {"PATH": _PATH, "HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([program, *command], stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        for opened in (port, http_port):
            _wait(process, opened, folder / "proxy.log")
        yield FrontDoor(port, http_port, base_path, authority.file)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_SECONDS)


@contextmanager
def proxy_site(proxy: ProxyName, site: str, folder: Path, port: int) -> Iterator[None]:
    """Run a proxy with one site, which listens on ``port`` without HTTPS, until the block ends."""
    program = shutil.which(proxy, path=_PATH)
    if program is None:
        pytest.skip(f"no {proxy}: run scripts/provision")
    folder.mkdir()
    if proxy == "nginx":
        (folder / "site.conf").write_text(site)
        command = _nginx_command(folder)
    else:
        (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{site}")
        command = _CADDY_COMMAND
    environment = {"PATH": _PATH, "HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([program, *command], stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        _wait(process, port, folder / "proxy.log")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _swapped(text: str, swaps: Mapping[str, str]) -> str:
    """Replace texts; one that is not there is a mistake, as the file would be tried differently than thought."""
    for old, new in swaps.items():
        assert old in text, f"{old!r} is not in the example"
        text = text.replace(old, new)
    return text


def _nginx(
    folder: Path,
    text: str,
    hub: str,
    ports: tuple[int, int],
    certificate: Certificate,
    passwords: Mapping[str, str],
) -> list[str]:
    shutil.copytree(ROOT / "deploy/nginx/snippets", folder / "snippets")
    name = "www.example.org" if "www.example.org" in text else "gpus.example.org"
    swaps = {
        "listen 443 ": f"listen 127.0.0.1:{ports[0]} ",
        "listen [::]:443 ": f"listen [::1]:{ports[0]} ",
        "listen 80;": f"listen 127.0.0.1:{ports[1]};",
        "listen [::]:80;": f"listen [::1]:{ports[1]};",
        f"/etc/ssl/{name}.pem": str(certificate.file),
        f"/etc/ssl/private/{name}.key": str(certificate.key),
        f"server_name {name};": "server_name localhost;",
        "server 10.0.0.6:8470;" if passwords else "server 127.0.0.1:8470;": f"server {hub};",
    }
    if passwords:
        swaps["/etc/nginx/gpuherd.passwords"] = str(folder / "passwords")
        lines = (f"{name}:{{PLAIN}}{password}\n" for name, password in passwords.items())
        (folder / "passwords").write_text("".join(lines))
    (folder / "site.conf").write_text(_swapped(text, swaps))
    return _nginx_command(folder)


def _nginx_command(folder: Path) -> list[str]:
    (folder / "nginx.conf").write_text(
        _NGINX_MAIN.format(user="root" if os.geteuid() == 0 else "nobody", folder=folder)
    )
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def _caddy(
    folder: Path,
    text: str,
    hub: str,
    ports: tuple[int, int],
    certificate: Certificate,
    passwords: Mapping[str, str],
) -> list[str]:
    name = "www.example.org" if "\nwww.example.org {" in text else "gpus.example.org"
    swaps = {
        f"\n{name} {{": f"\nlocalhost {{\n\ttls {certificate.file} {certificate.key}",
        "reverse_proxy 10.0.0.6:8470"
        if passwords
        else "reverse_proxy 127.0.0.1:8470": f"reverse_proxy {hub}",
    }
    if passwords:
        swaps["/etc/caddy/gpuherd.passwords"] = str(folder / "passwords")
        (folder / "passwords").write_text(
            "".join(f"{name} {_caddy_hash(password)}\n" for name, password in passwords.items())
        )
    head = _CADDY_GLOBALS.format(port=ports[0], http_port=ports[1])
    (folder / "Caddyfile").write_text(head + _swapped(text, swaps))
    return _CADDY_COMMAND


def _caddy_hash(password: str) -> str:
    caddy = shutil.which("caddy", path=_PATH)
    assert caddy is not None
    done = subprocess.run(
        [caddy, "hash-password", "--plaintext", password],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout.strip()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.02)
