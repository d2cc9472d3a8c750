"""On the node: read at a steady pace, survive the driver, keep what the hub has not confirmed, send it.

``watch.py`` owns the child processes in which the driver is called, ``outbox.py`` what is not yet acknowledged,
``talk.py`` what is said to the hub, which ``link.py`` dials or ``listen.py`` lets dial; ``loop.py`` ties them together.
docs/agent.md tells it in full.
"""
