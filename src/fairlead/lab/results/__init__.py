"""What a run leaves behind: tables in Parquet with a fixed schema, written whole or not at all.

Reading order: `tables.py` has the columns; `writing.py` writes a run's directory; `loading.py` reads
runs as DataFrames.

Further modules: extra.
"""
