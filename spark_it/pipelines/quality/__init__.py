"""The quality report: what is checked of a topic, and its pictures."""
