"""Taking over the configuration of another tool: recognise a file, understand it, write gpuherd.toml.

One module reads each kind of file and gives ``Reading``: what was understood line by line, what was not and why, and
the entries that gpuherd.toml is to have. ``taking_over`` joins them with the file that is there.
"""

from gpuherd.wiring.importing.taking_over import Outcome, take_over
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["Outcome", "Wishes", "take_over"]
