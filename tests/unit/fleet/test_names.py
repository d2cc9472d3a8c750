"""Short names."""

from __future__ import annotations

import pytest

from gpuherd.fleet.names import short_name
from gpuherd.model.devices import DeviceFacts


@pytest.mark.parametrize(
    ("name", "profile", "short"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "A100 80GB"),
        ("NVIDIA H100 80GB HBM3", None, "H100 80GB"),
        ("Tesla V100-PCIE-32GB", None, "V100 32GB"),
        ("NVIDIA GeForce RTX 4090", None, "RTX 4090"),
        ("Tesla T4", None, "T4"),
        ("NVIDIA RTX 6000 Ada Generation", None, "RTX 6000 Ada"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "1g.10gb", "A100 80GB 1g.10gb"),
        ("NVIDIA", None, "NVIDIA"),
    ],
)
def test_short_name(name: str, profile: str | None, short: str) -> None:
    assert short_name(DeviceFacts(uuid="u", index=0, name=name, profile=profile)) == short
