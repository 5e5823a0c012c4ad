"""Pages of files, brought into memory and given back by threads."""
