"""What must never be lost (nodes, credentials, tokens), and the last state of every node.

``database.py`` opens SQLite or PostgreSQL and migrates it; ``nodes.py`` and ``join_tokens.py`` are the tables'
verbs; ``last_reports.py`` is a file of its own, written every moment, whose loss costs only a blank page until
the nodes report again.
"""
