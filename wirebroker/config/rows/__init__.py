"""What a config is: its row, its type, its text; the configs of topics."""
