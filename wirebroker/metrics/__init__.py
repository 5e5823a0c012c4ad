"""What a broker tells Prometheus about itself, under the names that dashboards know."""
