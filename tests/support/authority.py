"""A certificate authority of the test's own, made with openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Authority", "Certificate", "needs_openssl"]

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed: no certificate can be made"
)


class Certificate(NamedTuple):
    """A certificate and its key, in PEM form."""

    file: Path
    key: Path


class Authority:
    """Issues certificates; ``file`` is what others trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.file = folder / "ca.pem"
        self._openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority"
            " -keyout ca.key -out ca.pem"
        )

    def issue(self, name: str, *, days: int = 2) -> Certificate:
        """Make a new certificate for a name such as ``IP:127.0.0.1``, in the place of the one before."""
        (self._folder / "names.cnf").write_text(f"subjectAltName={name}\n")
        self._openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout server.key"
            " -out server.csr"
        )
        self._openssl(
            f"x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 1 -days {days} -extfile names.cnf"
            " -out server.pem"
        )
        return Certificate(self._folder / "server.pem", self._folder / "server.key")

    def _openssl(self, arguments: str) -> None:
        subprocess.run(["openssl", *arguments.split()], cwd=self._folder, check=True, capture_output=True)
