"""Changes of topics and groups: what they would do, whether they can be made, and the requests."""
