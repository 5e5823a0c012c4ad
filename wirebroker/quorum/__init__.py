"""The metadata quorum: its log, the controller, and this node's membership."""
