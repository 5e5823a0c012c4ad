"""Delivery services of a cluster: pending records and dead letters."""
