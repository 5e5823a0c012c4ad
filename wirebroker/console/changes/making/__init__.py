"""From values to a change that was made: checks, plans, confirmations, runs."""
