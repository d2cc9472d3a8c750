"""Benchmarks: ratios measured in one run, alternating, medians. ``make bench`` runs them all."""
