"""Simulation of other systems in a child process, by hiding what they lack (`hide.py`)."""
