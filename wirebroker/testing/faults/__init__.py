"""Faults that tests set, and how a broker acts on them."""
