"""A job's file, folder, log and errors."""
