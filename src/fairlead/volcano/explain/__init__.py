"""Answers about what a round did and why something waits.

Read `waiting_pod`, `group`, `queue`, `round_lacks`, `victims`; `text` prints them.
"""
