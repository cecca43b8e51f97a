"""Sharding: to be introduced."""
