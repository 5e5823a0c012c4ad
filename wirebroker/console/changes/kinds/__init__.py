"""The kinds of changes, one module for each subject."""
