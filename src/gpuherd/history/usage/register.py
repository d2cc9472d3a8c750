"""All stays that are open or not yet written away, each with a number that is used instead of its name."""

from __future__ import annotations

from collections.abc import Iterable

from gpuherd.history.batch import SessionKey

__all__ = ["Register"]


class Register:
    """Numbers of stays. They are small and used again, so that arrays can be indexed by them. For one thread."""

    def __init__(self) -> None:
        self.keys: list[SessionKey | None] = []
        """By number; none: not in use."""
        self._numbers: dict[SessionKey, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def capacity(self) -> int:
        """One more than the highest number ever given."""
        return len(self.keys)

    def number(self, key: SessionKey) -> int:
        """Give the number of a stay, a new one if it has none."""
        number = self._numbers.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.keys[number] = key
            else:
                number = len(self.keys)
                self.keys.append(key)
            self._numbers[key] = number
        return number

    def key(self, number: int) -> SessionKey:
        """Give the stay that has a number."""
        key = self.keys[number]
        if key is None:
            raise AssertionError(f"number {number} is not in use")
        return key

    def retire(self, numbers: Iterable[int]) -> None:
        """Take numbers back."""
        for number in numbers:
            key = self.keys[number]
            if key is not None:
                del self._numbers[key]
                self.keys[number] = None
                self._free.append(number)
