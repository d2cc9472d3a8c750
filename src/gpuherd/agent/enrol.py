"""Enrolment: a join token buys this node's own credential, which is kept in a file only its owner can read."""

from __future__ import annotations

import base64
import logging
import os
import re
import socket
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd import __version__
from gpuherd.agent.address import HubAddress
from gpuherd.agent.tls import tls_context
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.text import clean

__all__ = ["HOW_TO_ENROL", "Credentials", "check_shown_to", "enrolled_at", "hub_file", "read_secret"]

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 15.0
_MAX_ANSWER_BYTES = 65_536
_MAX_SECRET_BYTES = 4096
# What may stand in an HTTP header and in one line of a file.
_SECRET = re.compile(r"[\x21-\x7e]+")
_OWN_CREDENTIAL = re.compile(r"ghn_[A-Za-z0-9_-]{43}")
HOW_TO_ENROL = (
    "create a join token on the hub with `gpuherd token create`, put it in a file on this node and "
    "start the agent with --join-token-file FILE"
)


class _Request(Struct, frozen=True, omit_defaults=True):
    token: str
    hostname: str
    credential: str
    name: str | None = None


class _Answer(Struct, frozen=True):
    node_id: str
    credential: str


class _Detail(Struct, frozen=True):
    message: str = ""


class _ErrorAnswer(Struct, frozen=True):
    error: _Detail = _Detail()


def read_secret(file: str, what: str) -> str:
    """Read a secret from a file, or from standard input for ``-``; ``Misconfigured`` if it cannot be one."""
    try:
        data = sys.stdin.buffer.read(_MAX_SECRET_BYTES) if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Misconfigured(f"the {what} cannot be read from {file}: {error.strerror}") from error
    text = data.decode("utf-8", errors="replace").strip()
    if len(text) > _MAX_SECRET_BYTES or not _SECRET.fullmatch(text):
        raise Misconfigured(f"{file} does not contain a {what}: it must be one line of printable characters")
    return text


def hub_file(credential_file: Path) -> Path:
    """Give the file that names the hub which a credential was given by."""
    return credential_file.with_name(f"{credential_file.name}.hub")


def enrolled_at(credential_file: Path) -> str | None:
    """Tell which hub gave this credential; None if that is not known, as for one that was put there by hand."""
    try:
        return hub_file(credential_file).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def check_shown_to(credential_file: Path, address: HubAddress) -> None:
    """See that a credential is shown to the hub that gave it: another could speak as this node with it."""
    known_to = enrolled_at(credential_file)
    if known_to is not None and known_to != address.url:
        raise Misconfigured(
            f"agent.hub_url: this node is enrolled at {clean(known_to, 300)}, and its credential is never "
            f"sent to {address.url}; to enrol it there, delete {credential_file} and start with a join "
            f"token; if it is the same hub at another address, delete {hub_file(credential_file)}"
        )


class Credentials:
    """Gives this node's credential, enrolling first if there is none yet. Blocking: call it in a thread."""

    def __init__(
        self,
        address: HubAddress,
        *,
        credential_file: Path,
        join_token_file: str | None = None,
        node_name: str | None = None,
        tls_ca_file: str | None = None,
    ) -> None:
        self.address = address
        self._credential_file = credential_file
        self._join_token_file = join_token_file
        self._node_name = node_name
        self._tls_ca_file = tls_ca_file
        self._join_token: str | None = None

    def check(self) -> None:
        """See that there is a credential or a join token; ``Misconfigured`` says how to get one."""
        if self.address.is_secure:
            tls_context(self._tls_ca_file)
        if self._has_credential():
            read_secret(str(self._credential_file), "credential")
            check_shown_to(self._credential_file, self.address)
        elif self._join_token_file is not None:
            # Read now: standard input is there only once, and a wrong path should stop the start.
            self._join_token = read_secret(self._join_token_file, "join token")
        else:
            raise Misconfigured(
                f"this node is not enrolled at {self.address.url}: there is no {self._credential_file}; "
                f"{HOW_TO_ENROL}"
            )

    def get(self) -> str:
        """Give the credential. ``Failed`` if the hub cannot be reached, ``Misconfigured`` if it says no."""
        if not self._has_credential():
            self._enrol()
        check_shown_to(self._credential_file, self.address)
        return read_secret(str(self._credential_file), "credential")

    def _has_credential(self) -> bool:
        try:
            return self._credential_file.exists()
        except OSError as error:
            raise Misconfigured(
                f"{self._credential_file} cannot be read: {error.strerror}; let this user read the folder"
            ) from error

    def _enrol(self) -> None:
        if self._join_token is None:
            self.check()
        token = self._join_token or ""
        hostname = clean(socket.gethostname())
        # Kept before the token is spent: if the answer is lost, the same request gives it again, also after a restart.
        credential = self._own_credential()
        body = msgspec.json.encode(
            _Request(token=token, hostname=hostname, credential=credential, name=self._node_name)
        )
        status, answer = self._post(body)
        if not 200 <= status < 300:
            raise self._refusal(status, answer)
        try:
            enrolled = msgspec.json.decode(answer, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Failed(
                f"{self.address.url} sent an unexpected response to the enrolment: {error}"
            ) from error
        if not _SECRET.fullmatch(enrolled.credential):
            raise Failed(
                f"{self.address.url} sent an unexpected response to the enrolment: its credential is not valid"
            )
        self._store(enrolled.credential)
        self._join_token = None
        log.info("enrolled at %s as %s", self.address.url, clean(enrolled.node_id))

    def _post(self, body: bytes) -> tuple[int, bytes]:
        import http.client  # noqa: PLC0415 - needed once in a node's life, and two megabytes

        address = self.address
        try:
            if address.is_secure:
                context = tls_context(self._tls_ca_file)
                connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                    address.host, address.port, timeout=TIMEOUT_SECONDS, context=context
                )
            else:
                connection = http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_SECONDS)
            try:
                headers = {"Content-Type": "application/json", "User-Agent": f"gpuherd-agent/{__version__}"}
                connection.request("POST", address.enroll_path, body, headers)
                response = connection.getresponse()
                return response.status, response.read(_MAX_ANSWER_BYTES)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise Failed(
                f"the hub at {address.url} cannot be reached to enrol: {clean(str(error) or type(error).__name__, 200)}"
            ) from error

    def _refusal(self, status: int, answer: bytes) -> Failed | Misconfigured:
        try:
            message = clean(msgspec.json.decode(answer, type=_ErrorAnswer).error.message, 300)
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = ""
        if status == 429 or status >= 500:
            return Failed(
                f"{self.address.url} cannot enrol now (HTTP {status}): {message or 'no reason given'}"
            )
        if status == 404 or 300 <= status < 400:
            return Misconfigured(
                f"agent.hub_url: there is no gpuherd hub at {self.address.url} (HTTP {status}); "
                "check the address and its base path"
            )
        what = "does not accept this name" if status == 409 else "refused the join token"
        # A hub names the remedy with the reason.
        told = message if "gpuherd" in message else f"{message or 'no reason given'}; {HOW_TO_ENROL}"
        return Misconfigured(f"{self.address.url} {what} (HTTP {status}): {told}")

    def _own_credential(self) -> str:
        """Give the credential to enrol with: that of an enrolment which was not finished, else a new one.

        It is shown to the hub it was made for and to no other: that one could speak as this node with it.
        """
        try:
            credential, url = self._unfinished.read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            credential = url = ""
        if url != self.address.url or not _OWN_CREDENTIAL.fullmatch(credential):
            credential = "ghn_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
            self._write(self._unfinished, f"{credential}\n{self.address.url}\n")
        return credential

    @property
    def _unfinished(self) -> Path:
        return self._credential_file.with_name(f".{self._credential_file.name}.new")

    def _store(self, credential: str) -> None:
        # Whose it is goes first: a credential that lies there without would be shown to anyone.
        self._write(hub_file(self._credential_file), self.address.url + "\n")
        self._write(self._credential_file, credential + "\n")
        self._unfinished.unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        """Write a file whole and for good, readable by its owner only; ``Misconfigured`` if that is impossible."""
        temporary = path.with_name(f"{path.name}.tmp")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(fd, 0o600)
                os.write(fd, text.encode())
                os.fsync(fd)
            finally:
                os.close(fd)
            temporary.replace(path)
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise Misconfigured(
                f"cannot save the credential in {path}: {error.strerror}; make the folder writable or set "
                "agent.state_dir"
            ) from error
