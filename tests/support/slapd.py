"""A real slapd on loopback ports of its own, with people, groups and a certificate."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.authority import Authority
from support.running import PATIENCE_SECONDS, free_port, frozen

__all__ = [
    "ADMIN_PASSWORD",
    "SEARCHER",
    "SEARCHER_PASSWORD",
    "ZOES_PASSWORD",
    "Slapd",
    "need_slapd",
    "running_slapd",
]

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_SLAPD = shutil.which("slapd", path=_PATH)

BASE = "dc=example,dc=org"
ADMIN = f"cn=admin,{BASE}"
ADMIN_PASSWORD = "the directory's owner"
SEARCHER = f"cn=searcher,ou=services,{BASE}"
SEARCHER_PASSWORD = "looks people up"

ZOES_PASSWORD = "pässwörd \N{SNOWMAN}"

_CONFIG = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
TLSCACertificateFile {authority}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
# A real server may well take these; a client must not rely on its refusing them.
allow bind_anon_cred bind_anon_dn
database mdb
maxsize 16777216
suffix "{base}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{searcher}" read by self read by anonymous auth by * none
"""

_PEOPLE = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups

dn: ou=services,{BASE}
objectClass: organizationalUnit
ou: services

dn: {SEARCHER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: searcher
userPassword: {SEARCHER_PASSWORD}

dn: uid=alice,ou=people,{BASE}
objectClass: inetOrgPerson
uid: alice
cn: Alice Ash
sn: Ash
employeeNumber: aash
mail: alice@example.org
userPassword: alice's password

dn: uid=bob,ou=people,{BASE}
objectClass: inetOrgPerson
uid: bob
cn: Bob (the \\ builder)
sn: Birch
userPassword: bob's password

dn: uid=zoe,ou=people,{BASE}
objectClass: inetOrgPerson
uid: zoe
cn:: {base64.b64encode("Zoé Weiß".encode()).decode()}
sn: W
userPassword:: {base64.b64encode(ZOES_PASSWORD.encode()).decode()}

dn: uid=twin,ou=people,{BASE}
objectClass: inetOrgPerson
uid: twin
cn: Twin One
sn: One
userPassword: twin's password

dn: ou=more,ou=people,{BASE}
objectClass: organizationalUnit
ou: more

dn: uid=twin,ou=more,ou=people,{BASE}
objectClass: inetOrgPerson
uid: twin
cn: Twin Two
sn: Two
userPassword: twin's password

dn: cn=gpu-admins,ou=groups,{BASE}
objectClass: groupOfNames
cn: gpu-admins
member: uid=alice,ou=people,{BASE}

dn: cn=gpu-users,ou=groups,{BASE}
objectClass: groupOfNames
cn: gpu-users
member: uid=alice,ou=people,{BASE}
member: uid=bob,ou=people,{BASE}

dn: cn=posix,ou=groups,{BASE}
objectClass: posixGroup
cn: posix
gidNumber: 5000
memberUid: bob

dn: ou=elsewhere,{BASE}
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/ou=people,{BASE}
"""


def need_slapd() -> None:
    """Skip where no directory can be run or asked, saying why."""
    pytest.importorskip("bonsai", reason="bonsai is not installed: it needs libldap-dev (scripts/provision)")
    if _SLAPD is None or shutil.which("ldapmodify") is None:
        pytest.skip("no slapd: install slapd and ldap-utils (scripts/provision)")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")


class Slapd:
    """A running directory."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.folder = folder
        self.ca_file = authority.file
        self._port, self._tls_port = free_port(), free_port()
        self.url = f"ldap://127.0.0.1:{self._port}"
        self.tls_url = f"ldaps://127.0.0.1:{self._tls_port}"
        certificate = authority.issue("IP:127.0.0.1")
        (folder / "data").mkdir(parents=True)
        (folder / "slapd.conf").write_text(
            _CONFIG.format(
                folder=folder,
                authority=authority.file,
                certificate=certificate.file,
                key=certificate.key,
                base=BASE,
                admin=ADMIN,
                password=ADMIN_PASSWORD,
                searcher=SEARCHER,
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        assert _SLAPD is not None
        with (self.folder / "slapd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    _SLAPD,
                    "-f",
                    str(self.folder / "slapd.conf"),
                    "-h",
                    f"{self.url} {self.tls_url}",
                    "-d",
                    "256",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _answers(self) -> bool:
        asked = ["ldapsearch", "-x", "-H", self.url, "-s", "base", "-b", "", "-o", "nettimeout=2"]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def modify(self, ldif: str, *options: str) -> None:
        """Change the directory as its owner; ``-a`` adds."""
        subprocess.run(
            ["ldapmodify", *options, "-x", "-H", self.url, "-D", ADMIN, "-w", ADMIN_PASSWORD],
            input=ldif.encode(),
            check=True,
            capture_output=True,
        )

    def log(self) -> str:
        """What it has written: every bind and search."""
        return (self.folder / "slapd.log").read_text(errors="replace")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep it from answering, though its ports stay open."""
        assert self._process is not None
        with frozen(self._process.pid):
            yield

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None


@contextmanager
def running_slapd(folder: Path) -> Iterator[Slapd]:
    """Run a directory with a few people in it."""
    folder.mkdir()
    slapd = Slapd(folder / "slapd", Authority(folder / "authority"))
    try:
        slapd.start()
        slapd.modify(_PEOPLE, "-a", "-M")
        yield slapd
    finally:
        slapd.stop()
