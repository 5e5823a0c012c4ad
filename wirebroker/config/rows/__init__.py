"""The parts of a config: row, type, text; the configs of topics."""
