"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is slow now and then; that is no error in what is tested.
settings.register_profile("gpuherd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpuherd")
