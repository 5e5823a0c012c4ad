"""The controller of the quorum, in this process."""
