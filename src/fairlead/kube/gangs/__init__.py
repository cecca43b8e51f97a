"""Gangs: to be introduced."""
