"""By what failed logins are counted."""

from __future__ import annotations

import pytest

from gpuherd.api.sender import Sender


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("unknown", "unknown", True),
    ],
)
def test_one_machine_has_many_addresses_only_with_ipv6(one: str, other: str, is_same: bool) -> None:
    first, second = (Sender(address=address, is_https=True, is_local=False).place for address in (one, other))
    assert (first == second) is is_same
