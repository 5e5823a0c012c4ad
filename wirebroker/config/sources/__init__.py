"""Where settings come from: flags, environment, files, dynamic changes."""
