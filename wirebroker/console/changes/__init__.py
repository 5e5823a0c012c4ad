"""Changes of a cluster: what each will do, its command line, and doing it."""
