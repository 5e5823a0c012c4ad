"""Who uses the console: users, tokens, sessions, and their roles."""
