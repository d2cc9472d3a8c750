"""The last known devices, kept over restarts: with a hung driver they are all that can be said."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from gpuherd.model.devices import DeviceFacts

__all__ = ["KnownDevices"]

log = logging.getLogger(__name__)


class KnownDevices:
    """A small file of device facts. Failing to keep it is said once and harms nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._saved: tuple[DeviceFacts, ...] | None = None

    def load(self) -> tuple[DeviceFacts, ...]:
        """Give the devices seen last, or none."""
        try:
            self._saved = msgspec.msgpack.decode(self._file.read_bytes(), type=tuple[DeviceFacts, ...])
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning(
                "cannot read the list of known devices in %s: %s; it will be written again", self._file, error
            )
            return ()
        return self._saved

    def save(self, devices: tuple[DeviceFacts, ...]) -> None:
        """Keep the devices, if they are others than before."""
        if devices == self._saved:
            return
        self._saved = devices
        temporary = self._file.with_name(f".{self._file.name}.new")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.msgpack.encode(devices))
            os.replace(temporary, self._file)  # noqa: PTH105 - the same in one word
        except OSError as error:
            log.warning("cannot write the list of known devices to %s: %s", self._file, error.strerror)
