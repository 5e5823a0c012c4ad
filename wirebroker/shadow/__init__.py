"""`wirebroker shadow`: partitions of any cluster, copied byte for byte and verified on the way."""
