"""Tables on disk: Parquet files that a catalogue lists, DuckDB to ask them, and the care they need.

``catalogue.py`` says which files count, and changes that in one durable step; ``segments.py`` describes a file and
checks it; ``writing.py`` lays out columns for one; ``engine.py`` runs SQL within bounds; ``tables.py`` joins these and
survives files that have gone bad; ``compaction.py`` and ``retention.py`` keep them few and within limits;
``ballast.py`` is room for the last step on a full disk.
"""
