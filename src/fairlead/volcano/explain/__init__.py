"""Explain: to be introduced."""
