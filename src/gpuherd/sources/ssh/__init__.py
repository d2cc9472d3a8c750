"""Nodes without an agent: one SSH login and one long-lived channel each, on which a small shell loop prints rounds.

``way`` follows a node; ``login`` finds out how to log in (the list, gpuherd.toml, ssh_config); ``dial`` gets as far as
the server's greeting, ``connect`` logs in, ``jumps`` shares jump hosts, ``session`` turns bytes into reports;
``host_keys`` decides whom to trust and ``offer`` fetches a key for a person to accept.
"""
