"""Affinity: to be introduced."""
