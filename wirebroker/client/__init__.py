"""A client of any Kafka cluster; failures raise ClientError."""
