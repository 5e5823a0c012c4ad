"""Hosts of test brokers: this process, a child process, a container."""
