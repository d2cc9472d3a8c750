"""A real nginx on a loopback port, which asks for a password and says who someone is."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.running import PATIENCE_SECONDS, free_port

__all__ = ["NGINX_ADDRESS", "need_nginx", "running_nginx"]

_NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
NGINX_ADDRESS = "127.0.0.2"
"""Where it speaks to the hub from; programs of the test come from 127.0.0.1."""

_CONFIG = """\
user {user};
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr info;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {http}
    server {{
        listen 127.0.0.1:{port};
        auth_basic "the lab";
        auth_basic_user_file {folder}/passwords;
        location / {{
            proxy_pass {hub};
            proxy_bind {address};
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Remote-User $remote_user;
            {location}
        }}
    }}
}}
"""


def need_nginx() -> None:
    """Skip where there is none, saying why."""
    if _NGINX is None:
        pytest.skip("no nginx: install nginx-light (scripts/provision)")


@contextmanager
def running_nginx(
    folder: Path, hub: str, passwords: dict[str, str], *, http: str = "", location: str = ""
) -> Iterator[str]:
    """Run it in front of a hub; gives its address. ``http`` and ``location`` are further lines of its blocks."""
    assert _NGINX is not None
    folder.mkdir()
    port = free_port()
    file = folder / "nginx.conf"
    file.write_text(
        _CONFIG.format(
            user="root" if os.geteuid() == 0 else "nobody",
            folder=folder,
            port=port,
            hub=hub.rstrip("/"),
            address=NGINX_ADDRESS,
            http=http,
            location=location,
        )
    )
    (folder / "passwords").write_text(
        "".join(f"{name}:{{PLAIN}}{password}\n" for name, password in passwords.items())
    )
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [_NGINX, "-p", str(folder), "-c", str(file), "-e", "stderr"], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _listens(port):
            text = (folder / "nginx.log").read_text(errors="replace")
            assert process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
