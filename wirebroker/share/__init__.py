"""Share groups on the broker: the persister of their delivery state."""
