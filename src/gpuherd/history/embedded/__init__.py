"""Samples in files of the hub's own.

``kinds.py`` says what is kept and how finely; ``rows.py`` are samples as columns; ``memory.py`` mirrors what only the
journal holds so far; ``grid.py`` sums up on steps of time; ``shelf.py`` are the files of devices or hosts: sealed hour
by hour, rolled up, merged, forgotten; ``asking.py`` gets rows and rollups out of them; ``reading.py`` answers from all
of these; ``store.py`` puts them together.
"""
