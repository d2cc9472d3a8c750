"""The whole herd in numbers, minute by minute and type by type: small, and kept here whatever keeps the samples.

``tally.py`` sums samples up; ``sink.py`` brings the sums into files; ``reader.py`` tells of them.
"""
