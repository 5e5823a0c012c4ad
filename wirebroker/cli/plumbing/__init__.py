"""What verbs share: flags, output, profiles, completion, the connection to a cluster."""
