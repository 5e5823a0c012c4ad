"""Data directories of test brokers, and copies of them."""
