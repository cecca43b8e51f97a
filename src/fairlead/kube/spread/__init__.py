"""Spread: to be introduced."""
