"""What brokers' metrics say about their clients: connections, and the use of quotas."""
