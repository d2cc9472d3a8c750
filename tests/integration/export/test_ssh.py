"""Hosts asked over SSH, once and without a hub: real sshds, the real script, the command as people run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gpu_hosts import GpuHosts, gpu_hosts
from support.nginx import need_nginx, running_nginx
from support.running import PATIENCE_SECONDS, eventually, free_port, running
from support.sshd import need_sshd

FIRST, SECOND, STRANGER, SLOW = "127.0.3.2", "127.0.3.1", "127.0.3.3", "127.0.3.4"
NO_SUCH_PID = 4_194_301


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHosts]:
    need_sshd()
    folder = tmp_path_factory.mktemp("hosts") / "all"
    users = ("root", "nobody", "nobody", "daemon")
    workers = [subprocess.Popen(["sleep", "1000"], user=user) for user in users]
    try:
        with gpu_hosts(folder, FIRST, SECOND, STRANGER, SLOW) as running:
            shared = running.gpu(FIRST, 0, utilization_gpu=97, utilization_memory=43, memory_used=40_000)
            for worker in workers[:3]:
                running.process(FIRST, shared, worker.pid)
            running.gpu(FIRST, 1, utilization_gpu=4, utilization_memory=1)
            running.process(FIRST, running.gpu(FIRST, 2, name="GeForce GTX 1080"), NO_SUCH_PID)
            running.process(SECOND, running.gpu(SECOND, 0), workers[3].pid)
            running.forget_key(STRANGER)
            running.gpu(SLOW, 0)
            running.delay(SLOW, 300)
            yield running
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _export(hosts: GpuHosts, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuherd", "export", *map(str, arguments)],
        env=hosts.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_one_command_does_what_the_older_two_did(hosts: GpuHosts, tmp_path: Path) -> None:
    """The table is the one that the older tool itself wrote of these hosts."""
    ini, page, table = hosts.write_ini(FIRST, SECOND), tmp_path / "index.html", tmp_path / "load_data.csv"
    herd = tmp_path / "herd.json"
    done = _export(hosts, "--ssh", ini, "--html", tmp_path, "--csv", table, "--json", herd, "--reload", "60")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert table.read_text() == (
        ",load,load_mem,gpu_idx,gpu_name,gpu_uuid,hostname,username\n"
        f'0,97,43,0, NVIDIA A100-SXM4-80GB, GPU-{FIRST}-0,{FIRST},"root, nobody, nobody"\n'
        f"1,4,1,1, NVIDIA A100-SXM4-80GB, GPU-{FIRST}-1,{FIRST},\n"
        f"2,0,0,2, GeForce GTX 1080, GPU-{FIRST}-2,{FIRST},Zombie\n"
        f"0,0,0,0, NVIDIA A100-SXM4-80GB, GPU-{SECOND}-0,{SECOND},daemon\n"
    )
    text = page.read_text()
    assert text.index(FIRST) < text.index(SECOND)
    assert "root, nobody" in text
    assert "<dd>busy: computing</dd>" in text  # since when, who looks for the first time does not know
    assert '<a href="./load_data.csv">' in text
    assert {file.name for file in tmp_path.iterdir()} == {"index.html", "load_data.csv", "herd.json"}
    assert '"sleep"' in herd.read_text()
    assert "sleep 1000" not in herd.read_text(), "arguments stay on the host"


@pytest.mark.parametrize("options", [(), ("--copy",)])
def test_rows_keep_the_order_of_config_ini_after_an_import(
    hosts: GpuHosts, tmp_path: Path, options: tuple[str, ...]
) -> None:
    ini, config = hosts.write_ini(FIRST, SECOND), tmp_path / "gpuherd.toml"
    one_shot, timed, port = tmp_path / "once.csv", tmp_path / "load_data.csv", free_port()
    config.write_text(
        f'[hub]\nlisten = "127.0.0.1:{port}"\nstate_dir = "{tmp_path / "state"}"\n'
        f'[export]\ncsv = "{timed}"\nevery_seconds = 5\nprivacy = "member"\n'
    )
    subprocess.run(
        [sys.executable, "-m", "gpuherd", "import", str(ini), "--output", str(config), *options],
        env=hosts.environment,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    done = _export(hosts, "--config", config, "--csv", one_shot)
    assert (done.returncode, done.stderr) == (0, "")
    assert _hosts_of(one_shot) == [FIRST, SECOND]
    with running("hub", "--config", str(config), "run", environment=hosts.environment, log=tmp_path / "log"):
        assert eventually(lambda: _hosts_of(timed), lambda found: len(found) == 2) == [FIRST, SECOND]


def _hosts_of(table: Path) -> list[str]:
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    return list(dict.fromkeys(line.split(",")[6] for line in lines))


def test_dead_strange_and_hanging_hosts_are_shown_as_such(hosts: GpuHosts, tmp_path: Path) -> None:
    dead = f"127.0.3.5:{free_port()}"
    ini, full = hosts.write_ini(STRANGER, dead, SLOW, SECOND), tmp_path / "full.csv"
    done = _export(hosts, "--ssh", ini, "--html", tmp_path, "--full-csv", full, "--deadline", "6")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "index.html").read_text()
    assert f"gpuherd hub accept-key {STRANGER}" in text
    assert "nothing listens on 127.0.3.5" in text
    assert "daemon" in text
    states = {line.split(",")[1]: line.split(",")[4] for line in full.read_text().splitlines()[1:]}
    assert {name: states[name] for name in (STRANGER, "127.0.3.5", SECOND)} == {
        STRANGER: "never",
        "127.0.3.5": "never",
        SECOND: "live",
    }
    assert ",free," not in full.read_text()


def test_nobody_answers(hosts: GpuHosts, tmp_path: Path) -> None:
    done = _export(hosts, "--ssh", hosts.write_ini(STRANGER), "--html", tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "gpuherd: the host has not responded; the output says why. For details run: gpuherd doctor HOST\n"
    )
    assert "accept-key" in (tmp_path / "index.html").read_text()


def test_a_configuration_and_pseudonyms(hosts: GpuHosts, tmp_path: Path) -> None:
    config = tmp_path / "gpuherd.toml"
    config.write_text(
        f'[[nodes]]\nhosts = ["gpu02={SECOND}:{hosts.port}", "gpu01={FIRST}:{hosts.port}"]\n'
        f'reach = {{ by = "ssh", user = "root", key_files = ["{hosts.key}"] }}\n'
        '[[nodes]]\nfind = { in = "hosts_file", file = "missing.txt" }\nreach = { by = "xmlrpc" }\n'
        '[[nodes]]\nhosts = ["gpu03=127.0.0.1:1"]\nreach = { by = "pull" }\n'
    )
    files = {name: tmp_path / name for name in ("page", "load_data.csv", "full.csv", "herd.json")}
    files["page"].mkdir()
    done = _export(
        hosts, "--config", config, "--privacy", "public", "--html", files["page"], "--csv", files["load_data.csv"],
        "--full-csv", files["full.csv"], "--json", files["herd.json"],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    written = "".join(file.read_text() for file in (files["page"] / "index.html", *list(files.values())[1:]))
    assert "~" in written
    assert "daemon" not in written
    assert "missing.txt" not in written
    page = (files["page"] / "index.html").read_text()
    assert [page.index(f">gpu0{number}<") for number in (1, 2, 3)] == sorted(
        page.index(f">gpu0{number}<") for number in (1, 2, 3)
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "there is no such file"),
        ("[common]\nuser = me\n", "there are no hosts"),
        ("[common]\nuser = me\nhosts = a b c!\n", "config.ini:3"),
    ],
)
def test_a_list_that_cannot_be_read_leaves_the_old_page(
    hosts: GpuHosts, tmp_path: Path, text: str | None, complaint: str
) -> None:
    page = tmp_path / "index.html"
    page.write_text("old")
    if text is not None:
        (tmp_path / "config.ini").write_text(text)
    done = _export(hosts, "--ssh", tmp_path / "config.ini", "--html", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("gpuherd: ")
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr
    assert page.read_text() == "old"


def test_the_recipes_for_cron_and_nginx(hosts: GpuHosts, tmp_path: Path) -> None:
    need_nginx()
    recipes = (Path(__file__).parents[3] / "docs" / "export.md").read_text(encoding="utf-8")
    (cron,) = re.findall(r"```cron\n\S+ \S+ \S+ \S+ \S+ (.*)\n```", recipes)
    (location,) = re.findall(r"```nginx\n(.*?)```", recipes, re.DOTALL)
    served = tmp_path / "served"
    served.mkdir()
    hosts.write_ini(FIRST, SECOND)
    places = {"/home/ubuntu/web-gpu-monitor": str(hosts.folder), "/var/www/gpu-monitor": str(served)}
    for written, meant in places.items():
        cron, location = cron.replace(written, meant), location.replace(written, meant)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", cron],
        env={**hosts.environment, "PATH": path},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    port = free_port()
    server = f"server {{ listen 127.0.0.1:{port};\n{location} }}"
    address = f"http://127.0.0.1:{port}/gpu-monitor/"
    with (
        running_nginx(tmp_path / "nginx", "http://127.0.0.1:1", {}, http=server),
        urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as answer,
    ):
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.read() == (served / "index.html").read_bytes()
