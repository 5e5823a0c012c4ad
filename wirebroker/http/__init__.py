"""What a broker says over HTTP: whether it is ready, and more; loaded only if it is asked for."""
