"""Omega: to be introduced."""
