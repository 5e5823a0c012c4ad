"""What a controller listener answers: a module for each family of requests."""
