"""Volcano's controllers: podgroups (groups for plain pods) and queues (their status, opening and closing)."""
