"""Where a test broker runs: in this process, in another, in a container."""
