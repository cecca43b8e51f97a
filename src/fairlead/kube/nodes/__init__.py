"""Nodes: to be introduced."""
