"""Cost that grows with partitions, connections, groups or segments."""
