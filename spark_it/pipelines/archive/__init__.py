"""Jobs that archive topics in Parquet and restore them."""
