"""What a console costs, and how fast it searches."""
