"""``gpuherd install``: the services of this machine as systemd units, written so that a second run changes nothing.

Files are decided first (``plan``), then written whole (``files``); systemd is asked last (``services``).
"""
