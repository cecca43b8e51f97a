"""Sharing GPUs of several types in time, in rounds, as in Gavel (Narayanan et al., OSDI 2020).

Reading order: `rounds.py` has the jobs and the round mechanism, `shares.py` the policies, which say how much of its
time each job is to have on each type.
"""
