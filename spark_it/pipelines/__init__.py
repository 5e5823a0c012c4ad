"""Whole jobs on Spark, `python -m wirebroker.pipelines`; spark_it/README.md is their guide."""
