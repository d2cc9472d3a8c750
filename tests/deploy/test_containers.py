"""Dockerfile, Compose file and Kubernetes manifests, as far as they can be tried where no engine runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from scripts.locks import lock_file, read_lock

from gpuherd.cli.group import group
from gpuherd.wiring.config import read_config
from support.running import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy/docker"
KUBERNETES = ROOT / "deploy/kubernetes"
MANIFESTS = ("namespace.yaml", "hub.yaml", "network.yaml", "ingress.yaml", "agents.yaml")
USER = 10001


def instructions() -> list[tuple[str, str, str]]:
    """Read the Dockerfile: the stage, the instruction and its argument, in order."""
    text = (DOCKER / "Dockerfile").read_text()
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    stage, found = "", []
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            stage = rest.rpartition(" AS ")[2]
        if word:
            found.append((stage, word, " ".join(rest.split())))
    return found


def asked(stage: str, word: str) -> list[str]:
    return [rest for where, what, rest in instructions() if (where, what) == (stage, word)]


def exec_form(text: str) -> list[str]:
    words: list[str] = json.loads(text)
    return words


def resources() -> list[dict[str, Any]]:
    return [part for name in MANIFESTS for part in yaml.safe_load_all((KUBERNETES / name).read_text())]


def resource(kind: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in resources() if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def is_a_command(arguments: list[str]) -> None:
    """Fail unless gpuherd takes these arguments."""
    told = CliRunner().invoke(group, [*arguments, "--help"], prog_name="gpuherd")
    assert told.exit_code == 0, (arguments, told.output)


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert found is not None, f"{name} is missing: pip install -e '.[dev]'"
    return found


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_dockerfile_is_sound() -> None:
    run(tool("hadolint"), "--failure-threshold", "info", str(DOCKER / "Dockerfile"))
    targets = {stage for stage, word, _ in instructions() if word == "FROM"}
    assert {"hub", "agent"} <= targets
    for target in ("hub", "agent"):
        assert asked(target, "HEALTHCHECK")
        is_a_command(exec_form(asked(target, "CMD")[0]))
    assert asked("base", "ENTRYPOINT") == ['["gpuherd"]']
    assert asked("base", "USER") == [f"{USER}:{USER}"]


def test_everything_that_is_copied_exists_and_is_let_in() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    sources = [
        source
        for text in asked("wheel", "COPY")
        for source in text.split()[:-1]
        if not source.startswith("--")
    ]
    assert set(sources) == let_in
    tracked = (
        run("git", "ls-files", *sources, cwd=ROOT).stdout.splitlines() if (ROOT / ".git").exists() else []
    )
    assert [source for source in sources if not (ROOT / source).exists()] == []
    if tracked:
        missing = [source for source in sources if not any(fnmatch(file, f"{source}*") for file in tracked)]
        assert missing == []


def test_the_wheel_comes_of_what_is_copied_and_is_what_the_images_install(tmp_path: Path) -> None:
    """The very command, with folders of the test for those of the image. That wheels install is tried elsewhere."""
    source, wheels = tmp_path / "src", tmp_path / "wheels"
    for text in asked("wheel", "COPY"):
        *names, target = text.split()
        for name in names:
            place = source / (name if target == "./" else target)
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, place, ignore=shutil.ignore_patterns("node_modules", "__pycache__", "page")
                )
            else:
                place.parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, place)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GPUHERD_SKIP_WEB": "1",  # the page is built by other tests, and takes half a minute
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    command = asked("wheel", "RUN")[-1]
    run("sh", "-ec", command.replace("/wheels", str(wheels)), cwd=source, env=environment)
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as content:
        metadata = next(name for name in content.namelist() if name.endswith("/METADATA"))
        extras = re.findall(r"^Provides-Extra: (.+)$", content.read(metadata).decode(), flags=re.MULTILINE)
    for stage in ("agent-environment", "hub-environment"):
        (command,) = asked(stage, "RUN")
        (pattern, extra) = re.findall(r"/wheels/([^\s)]+\.whl)\)(?:\[(\w+)\])?", command)[0]
        assert fnmatch(wheel.name, pattern)
        assert not extra or extra in extras


def test_the_images_install_from_the_lock() -> None:
    """What is downloaded is a set of the lock; pip is called directly only to build, with what was installed before."""
    image = next(rest for _, word, rest in instructions() if word == "ARG").partition(":")[2]
    python = image.partition("-")[0]
    known = {name for pin in read_lock(lock_file(python).read_text()) for name in pin.sets}
    downloads = {
        stage: [
            words[words.index("scripts/locks.py") + 2 :]
            for command in asked(stage, "RUN")
            if "scripts/locks.py install" in command
            for words in [shlex.split(command)]
        ]
        for stage in ("wheel", "agent-environment", "hub-environment")
    }
    sets = {
        stage: [word for words in commands for word in " ".join(words).partition(" --project")[0].split()]
        for stage, commands in downloads.items()
    }
    assert sets == {"wheel": ["build", "node"], "agent-environment": ["agent"], "hub-environment": ["all"]}
    assert {name for names in sets.values() for name in names} <= known
    for _, word, command in instructions():
        if word == "RUN" and "pip " in command:
            assert "--no-deps --no-build-isolation" in command


def test_the_compose_file_is_valid() -> None:
    file = DOCKER / "compose.yaml"
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(file))
    services = yaml.safe_load(file.read_text())["services"]
    targets = {stage for stage, word, _ in instructions() if word == "FROM"}
    for service in services.values():
        assert (
            DOCKER / service["build"]["context"] / service["build"]["dockerfile"]
        ).resolve() == DOCKER / "Dockerfile"
        assert service["build"]["target"] in targets
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
    is_a_command(services["agent"]["command"])
    assert services["agent"]["pid"] == "host"
    # One address is believed who asks, the machine's own, and no container has it.
    (network,) = yaml.safe_load(file.read_text())["networks"]["default"]["ipam"]["config"]
    settings = read_config((DOCKER / "gpuherd.toml").read_text(), "gpuherd.toml").hub
    assert [str(proxy) for proxy in settings.trusted_proxies] == [network["gateway"]]
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert (
        f"/deploy/docker/{yaml.safe_load(file.read_text())['secrets']['join-token']['file'][2:]}" in ignored
    )


def test_the_manifests_are_valid() -> None:
    files = [str(KUBERNETES / name) for name in MANIFESTS]
    run(tool("kubernetes-validate"), "--strict", *files)
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert tuple(listed) == MANIFESTS
    assert {path.name for path in KUBERNETES.glob("*.yaml")} == {*MANIFESTS, "kustomization.yaml"}


def test_the_manifests_fit_together() -> None:
    config = resource("ConfigMap", "gpuherd-hub")["data"]["gpuherd.toml"]
    settings = read_config(config, "gpuherd.toml").hub
    service = resource("Service", "gpuherd-hub")
    hub = resource("Deployment", "gpuherd-hub")["spec"]["template"]
    agent = resource("DaemonSet", "gpuherd-agent")["spec"]["template"]
    rule = resource("Ingress", "gpuherd")["spec"]["rules"][0]
    policy = resource("NetworkPolicy", "gpuherd-hub")["spec"]
    assert service["spec"]["selector"].items() <= hub["metadata"]["labels"].items()
    assert policy["podSelector"]["matchLabels"].items() <= hub["metadata"]["labels"].items()
    assert policy["ingress"][0]["ports"] == [{"port": hub["spec"]["containers"][0]["ports"][0]["name"]}]
    assert all(policy["ingress"][0]["from"])  # an empty one would let everybody in
    assert hub["spec"]["containers"][0]["ports"][0]["containerPort"] == int(
        settings.listen.rpartition(":")[2]
    )
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == service["metadata"]["name"]
    assert rule["host"] in settings.allowed_hosts
    arguments = agent["spec"]["containers"][0]["args"]
    address = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert f"http://{address}:{service['spec']['ports'][0]['port']}" in arguments
    assert address in settings.allowed_hosts
    for template in (hub, agent):
        (container,) = template["spec"]["containers"]
        is_a_command(container["args"])
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in template["spec"]["volumes"]}
        assert template["spec"]["securityContext"]["runAsUser"] == USER
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["readOnlyRootFilesystem"]
    assert agent["spec"]["hostPID"]


@pytest.mark.parametrize(
    "file", [DOCKER / "compose.yaml", KUBERNETES / "agents.yaml"], ids=lambda file: file.name
)
def test_the_commands_in_the_comments_are_ours(file: Path) -> None:
    comments = "\n".join(
        line.lstrip("# ") for line in file.read_text().splitlines() if line.lstrip().startswith("#")
    )
    found = re.findall(
        r"^.*?\b(gpuherd (?:hub|token) .+)$", comments.replace("\\\n", " "), flags=re.MULTILINE
    )
    assert found
    for text in found:
        is_a_command(shlex.split(text.partition(">")[0])[1:])
