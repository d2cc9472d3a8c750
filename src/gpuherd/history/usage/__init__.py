"""Who used what: samples become stays on devices, stays become sums, sums answer questions.

``accountant.py`` counts: ``seats.py`` is who is where, ``timeline.py`` which time is still to be counted,
``counting.py`` the arithmetic, ``flush.py`` many nodes at once, ``register.py`` the stays and their numbers.
``book.py`` keeps the sums: ``pages.py`` in memory, ``rows.py`` in files, ``standing.py`` and ``notes.py`` where
counting goes on after a restart; ``upkeep.py`` makes hours and pseudonyms, and forgets. ``asking.py`` answers.
"""
