"""Compiles the simulated ``libnvidia-ml.so.1`` on demand.

Needs only gcc. The result is kept under a name derived from the sources and flags, so that it is compiled once
and never stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["COMPILER", "LIBRARY_NAME", "SCENARIOS", "BuildError", "build_library", "simulator_environment"]

COMPILER = "gcc"
LIBRARY_NAME = "libnvidia-ml.so.1"
SCENARIOS = Path(__file__).parent / "scenarios"

_SOURCES = Path(__file__).parent
# No contraction to fused multiply-add: waveforms must equal those computed by Python bit by bit.
_FLAGS = (
    "-std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -ffp-contract=off -Wall -Wextra -Werror "
    f"-Wl,-soname,{LIBRARY_NAME} -Wl,-z,defs"
).split()


class BuildError(Exception):
    """The library could not be compiled; the message says why and what to do."""


def build_library(out_dir: Path, *, old_driver: bool = False) -> Path:
    """The path of the compiled library, ``<out_dir>/<hash>/libnvidia-ml.so.1``; compiles it if it is not there.

    ``old_driver`` leaves out what drivers before 510 lack: ``_v3`` process lists, ``nvmlDeviceGetMemoryInfo_v2``
    and everything newer. Several processes may call this at once. Raises BuildError.
    """
    sources = sorted(_SOURCES.glob("*.c"))
    flags = [*_FLAGS, *(["-DOLD_DRIVER"] if old_driver else [])]
    library = out_dir / _key(flags) / LIBRARY_NAME
    if library.exists():
        return library
    if shutil.which(COMPILER) is None:
        raise BuildError(
            f"{COMPILER} is not installed: install it (Debian: apt install gcc libc6-dev) or use the "
            "simulated collector, which needs no compiler"
        )
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        fresh = Path(scratch) / LIBRARY_NAME
        command = [COMPILER, *flags, "-o", str(fresh), *map(str, sources), "-lm", "-lpthread"]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode != 0:
            raise BuildError(f"{COMPILER} failed with status {compiled.returncode}:\n{compiled.stderr}")
        fresh.replace(library)  # atomic: a concurrent builder or user sees all of it or nothing
    return library


def simulator_environment(
    library: Path, scenario: Path, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment in which a new process finds ``library`` as its NVML and plays ``scenario``.

    The dynamic loader reads LD_LIBRARY_PATH at process start: setting it later has no effect.
    """
    environment = dict(os.environ if base is None else base)
    search = [str(library.parent), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(search)
    environment["GPUHERD_SIM_SCENARIO"] = str(scenario)
    return environment


def _key(flags: list[str]) -> str:
    digest = hashlib.sha256("\0".join(flags).encode())
    for source in sorted([*_SOURCES.glob("*.c"), *_SOURCES.glob("*.h")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
