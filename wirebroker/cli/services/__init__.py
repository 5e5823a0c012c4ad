"""The verbs of services that are clients of a cluster: the console, the delivery service."""
