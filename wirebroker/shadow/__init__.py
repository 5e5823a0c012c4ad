"""`wirebroker shadow`: a verified byte-for-byte copy of another cluster's partitions."""
