"""The numbers that fairlead holds itself to: `python -m benchmarks`."""
