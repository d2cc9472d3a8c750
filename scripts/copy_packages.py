"""Copy the packages that gpuherd[all] needs out of this environment: copy_packages.py FOLDER.

What is shipped is what was tested, in the very same versions, and no network is needed.
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = "gpuherd"


def closure(extras: frozenset[str]) -> dict[str, Distribution]:
    """Give everything that gpuherd with these extras needs, by name, without gpuherd itself."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(ROOT, extras)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found[name] = distribution(name)
        for line in found[name].requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            # With no extra wanted, a requirement of an extra must still be asked about: "" is none of them.
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in wanted or {""}):
                waiting.append((requirement.name.lower().replace("_", "-"), frozenset(requirement.extras)))
    del found[ROOT]
    return found


def copy(package: Distribution, folder: Path) -> None:
    """Copy a package's files that belong to site-packages: no commands, no compiled code, no tests."""
    home = Path(str(package.locate_file(""))).resolve()
    for file in package.files or ():
        source = Path(str(package.locate_file(file))).resolve()
        is_left_out = source.suffix == ".pyc" or "tests" in file.parts or not source.is_relative_to(home)
        if is_left_out or not source.is_file():
            continue
        target = folder / source.relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(source.stat().st_mode & 0o755)


def main() -> None:
    folder = Path(sys.argv[1])
    for package in closure(frozenset({"all"})).values():
        copy(package, folder)


if __name__ == "__main__":
    main()
