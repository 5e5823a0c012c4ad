"""Topics, their partitions, and the leaders that answer for them."""
