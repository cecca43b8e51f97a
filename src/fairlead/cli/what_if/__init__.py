"""Commands that ask a scheduler what would happen: `simulate.py`, `capacity.py`, `evictions.py`. `asking.py` finds the
scheduler and carries the question, `text.py` prints the answers.

Modules: waiting.
"""
