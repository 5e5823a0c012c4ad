"""What other systems than Linux lack, hidden from a child process (`hide.py`)."""
