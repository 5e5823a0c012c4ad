"""`Broker`: its life, its clock, its faults."""
