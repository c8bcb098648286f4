"""Sessions as tables, Parquet and bundles for others."""
