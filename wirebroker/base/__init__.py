"""Clock, threads, logging, metrics and text helpers that every room may import."""
