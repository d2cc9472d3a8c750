"""What holds for all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A busy machine is slow now and then; that is no error in what is tested.
settings.register_profile("gpuherd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpuherd")

# Under nohup, or in the background of a script, these are ignored, and so they would be by every command that a test
# starts, to see what it does when Ctrl-C is pressed or its terminal goes away.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)
