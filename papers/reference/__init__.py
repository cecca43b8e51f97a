"""Our laboratory held to recorded runs of the original programs, one directory of recordings at a time.

Reading order: `checks.py` is what every kind of directory gives, `directories.py` finds out which kind one is;
`omega.py`, `openb.py`, `gpu_policies.py` and `gavel.py` are the kinds.
"""
