"""Checks of a cluster, for `doctor` and for dry runs."""
