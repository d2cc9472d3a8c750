"""The hub's live state: ingest → state → availability → totals → changes.

One event loop owns it. Numbers live in a few large arrays (``arena.py``): a report costs one memory copy, and
everything else is worked out for the whole herd at once, once per tick.
"""
