"""Private keys from files; a key with a passphrase is of use only through an SSH agent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import asyncssh
from msgspec import Struct

__all__ = ["Identity", "KeyFiles"]

MAX_KEY_BYTES = 256 * 1024


class Identity(Struct, frozen=True):
    """What one key file gave."""

    file: Path
    key: asyncssh.SSHKey | None = None
    """The private key, if it can be used as it is."""
    certificate: asyncssh.SSHCertificate | None = None
    public_blobs: tuple[bytes, ...] = ()
    """The public key and its certificate, by which an agent may have the private one."""
    trouble: str = ""
    """Why the file gives no private key, with the remedy."""

    @property
    def is_missing(self) -> bool:
        """There is no such file."""
        return self.trouble.startswith("no such file")


class KeyFiles:
    """Reads key files, again only when they have changed: checking an RSA key takes a tenth of a second."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[object, Identity]] = {}

    def read(self, files: Iterable[Path]) -> list[Identity]:
        """Read every file; never fails, each identity says what is wrong with it."""
        return [self._identity(file) for file in files]

    def _identity(self, file: Path) -> Identity:
        try:
            state: object = tuple(
                (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
                for path in (file, _certificate_file(file), _public_file(file))
            )
        except OSError as error:
            return Identity(file, trouble=f"cannot be read ({error.strerror})")
        kept = self._read.get(file)
        if kept is None or kept[0] != state:
            kept = (state, _read_identity(file))
            self._read[file] = kept
        return kept[1]


def _certificate_file(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(".pub") + "-cert.pub")


def _public_file(file: Path) -> Path:
    return file if file.suffix == ".pub" else file.with_name(file.name + ".pub")


def _read_identity(file: Path) -> Identity:
    certificate = _certificate(_certificate_file(file))
    public = _public_key(_public_file(file)) or _public_key(file)
    blobs = [part.public_data for part in (certificate, public) if part is not None]
    key: asyncssh.SSHKey | None = None
    trouble = ""
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_KEY_BYTES)
        key = asyncssh.import_private_key(text)
        if key.public_data not in blobs:
            blobs.append(key.public_data)
    except FileNotFoundError:
        trouble = "no such file"
    except OSError as error:
        trouble = f"cannot be read ({error.strerror})"
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        if "assphrase" in str(error) or isinstance(error, asyncssh.KeyEncryptionError):
            trouble = (
                "is protected by a passphrase, which the hub cannot ask for: load it into an SSH agent "
                f"(ssh-add {file}) or create a key without one for the hub only"
            )
        elif public is not None:
            trouble = "is a public key; the agent does not have its private key"
        else:
            trouble = "is not a private key in a known format"
    return Identity(file, key, certificate, tuple(blobs), trouble)


def _certificate(file: Path) -> asyncssh.SSHCertificate | None:
    try:
        return asyncssh.read_certificate(str(file))
    except (OSError, asyncssh.KeyImportError):
        return None


def _public_key(file: Path) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.read_public_key(str(file))
    except (OSError, asyncssh.KeyImportError, UnicodeDecodeError):
        return None
