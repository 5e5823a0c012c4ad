"""The service process, on confluent-kafka."""
