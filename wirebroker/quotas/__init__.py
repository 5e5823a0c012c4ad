"""How much clients and replicas may do: what is measured of requests, and what comes of it."""
