"""The metrics that clients push (KIP-714)."""
