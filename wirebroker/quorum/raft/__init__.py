"""This node as a voter or observer of the metadata quorum."""
