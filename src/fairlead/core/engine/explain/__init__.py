"""Answers to "why is it pending?": built from the refusals of the last attempt and the state of the scheduler.

Reading order: answers (the entry points), pod, gang and plugin_gangs (groups of kube profiles), lacks and shortages
(what is missing, with amounts), decisions (the log that several may read), eviction_ledger, figures (numbers for
metrics). Modes with groups and queues of their own explain them themselves (core/engine/modes.py).

Further modules: rows.
"""
