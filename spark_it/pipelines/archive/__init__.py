"""The job that archives topics in Parquet."""
