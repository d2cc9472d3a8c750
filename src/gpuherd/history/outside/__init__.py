"""Stores of samples outside the hub: sent to from the journal, asked in PromQL."""
