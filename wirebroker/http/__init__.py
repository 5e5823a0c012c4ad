"""What a broker says over HTTP: whether it is ready; loaded only if it is asked for."""
