"""Jobs as files: settings, names, defaults."""
