"""What a client may do: ACLs, the rules of each request, the log of decisions."""
