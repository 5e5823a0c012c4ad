"""OAUTHBEARER tokens: validation, and retrieval for the broker's own logins."""
