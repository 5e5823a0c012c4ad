"""`wirebroker verify`: the checks, and their findings."""
