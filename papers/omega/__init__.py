"""Schedulers of the Omega paper beside those of fairlead.lab.omega, and its findings.

Read `experiment`, then `monolithic`, `mesos`, `shared_state` (one architecture each) and `orderings` (the findings).
"""
