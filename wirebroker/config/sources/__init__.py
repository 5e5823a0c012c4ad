"""Sources of settings: flags, environment, files, dynamic changes."""
