"""What a node, a GPU, a slice, a process and a sample are.

Frozen structs in base units (bytes, watts, hertz, ratios 0–1, seconds, UTC epoch); ``None`` is unknown.
Units, bounds and descriptions are declared once, on the fields; everything else reads them from here.
"""
