"""What the ACLs of a cluster allow, and what a change of them changes."""
