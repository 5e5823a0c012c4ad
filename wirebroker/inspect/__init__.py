"""Data directories looked at from outside: dump them, verify them, repair them."""
