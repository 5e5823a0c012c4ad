"""Authorization: ACLs, the rules of each request, the audit log."""
