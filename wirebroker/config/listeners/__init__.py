"""Listeners of the broker and of HTTP, as the settings describe them."""
