"""Metrics for Prometheus, under the names that existing dashboards use."""
