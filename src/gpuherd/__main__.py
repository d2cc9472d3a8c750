"""``python -m gpuherd`` is ``gpuherd``."""

from gpuherd.cli import main

main()
