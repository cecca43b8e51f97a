"""Volcano: to be introduced."""
