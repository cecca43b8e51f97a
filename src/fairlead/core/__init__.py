"""Core: to be introduced."""
