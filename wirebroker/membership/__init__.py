"""This node as a member of a cluster: with a controller of its own, or under others'."""
