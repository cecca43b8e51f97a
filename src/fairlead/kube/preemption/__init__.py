"""Preemption: to be introduced."""
