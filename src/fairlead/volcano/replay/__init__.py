"""Replay: to be introduced."""
