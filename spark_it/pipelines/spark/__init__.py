"""The start of Spark and its Java process."""
