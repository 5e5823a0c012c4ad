"""ACLs, users and tokens of a cluster, and settings for a client's login."""
