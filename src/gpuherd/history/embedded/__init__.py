"""Samples in files of the hub's own.

``kinds.py`` says what is kept and how finely; ``rows.py`` are samples as columns; ``memory.py`` mirrors what only the
journal holds so far; ``grid.py`` sums up on steps of time; ``store.py`` takes samples, and ``tending.py`` brings them
into files hour by hour, rolls up, merges and forgets; ``reading.py`` answers from all of these.
"""
