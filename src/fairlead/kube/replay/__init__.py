"""Recordings of schedulers, and replays that decide them again.

Reading order: recording (files, and what a form of recordings is), wellformed (parts of checks), forms and replay
(decisions of kube-scheduler) with commit_order, claim_replay and recorded_extender; recorder makes recordings of a
cluster that runs. Other families have forms and replays of their own.

Further modules: recorded_cluster.
"""
