"""Cli: to be introduced."""
