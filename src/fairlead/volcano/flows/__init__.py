"""Flows: to be introduced."""
