"""Volumes: to be introduced."""
