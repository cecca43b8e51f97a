"""A sweep over recorded runs: one event after the other, somebody restarts, misses something or lags behind there.

Reading order: perturbed (what can happen to a controller), stories (the runs), judging (the end state, and what is
wrong with it), sweeping (all of it, or a share).
"""
