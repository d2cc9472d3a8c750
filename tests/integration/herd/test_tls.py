"""A hub that serves HTTPS, and an agent that trusts just that hub's certificate."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest

from support.running import GPUHERD, PATIENCE_SECONDS, eventually, free_port, running


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed: no certificate can be made"
)
def test_an_agent_reports_to_an_https_hub(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        capture_output=True, check=True,
    )  # fmt: skip
    port = free_port()
    url = f"https://127.0.0.1:{port}/"
    config = tmp_path / "gpuherd.toml"
    config.write_text(
        f'[hub]\nlisten = "127.0.0.1:{port}"\nstate_dir = "{tmp_path}/hub"\n'
        f'tls_certificate = "{certificate}"\ntls_key = "{key}"\n'
        f'[agent]\nhub_url = "{url}"\ntls_ca_file = "{certificate}"\njoin_token_file = "{tmp_path}/token"\n'
        f'state_dir = "{tmp_path}/agent"\ncollectors = []\n'
    )
    trusted = ssl.create_default_context(cafile=str(certificate))

    def fleet() -> str:
        try:
            with urllib.request.urlopen(  # noqa: S310 - only ever the hub under test
                f"{url}api/v1/fleet", context=trusted, timeout=PATIENCE_SECONDS
            ) as answer:
                body: str = answer.read().decode()
                return body
        except OSError as error:
            return str(error)

    with running("hub", "--config", str(config), "run", log=tmp_path / "hub.log"):
        eventually(fleet, lambda seen: '"nodes":[]' in seen)
        token = subprocess.run(
            [*GPUHERD, "hub", "--config", str(config), "token", "create"],
            capture_output=True,
            text=True,
            check=True,
        )
        (tmp_path / "token").write_text(token.stdout)
        with running("agent", "--config", str(config), log=tmp_path / "agent.log"):
            eventually(fleet, lambda seen: '"state":"live"' in seen)
