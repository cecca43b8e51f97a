"""Omega's experiments: schedulers with think times on one cell, monolithic, two-level (Mesos) or with shared state.

Reading order: `setup.py` says what is run, `cell.py` is the cell, a node table with claims instead of pods;
`placing.py` and `streams.py` choose machines at random, `simulation.py` is the agenda, the jobs and the schedulers'
queues; `monolithic.py`, `shared_state.py` and `mesos.py` are the three architectures, `metrics.py` sums up.
`orderings.py` has the paper's findings.
`real_schedulers.py` runs the same experiment with pods and the profiles of real schedulers.

Further modules: pod_transactions, transactions.
"""
