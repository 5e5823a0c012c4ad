"""Costs that grow with partitions, connections, groups or segments."""
