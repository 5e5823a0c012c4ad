"""ACLs, users and tokens of a cluster, and the settings by which a client logs in."""
