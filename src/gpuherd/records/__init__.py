"""What must never be lost: nodes, people and their keys, bookings, the audit log. Also the last state of every node.

``database.py`` opens SQLite or PostgreSQL and migrates it to ``tables.py``; ``transactions.py`` is how every verb reads
or writes. The verbs: ``nodes.py``; ``people.py``, which joins ``accounts.py`` and ``keys.py``; ``bookings.py``;
``audit.py``; ``backup.py``. ``last_reports.py`` is a file of its own,
written every moment, whose loss costs only a blank page until the nodes report again.
"""
