"""Quotas that lend. Reading order: `sharing` (water-filling), `accounts` (one tree of quotas), `usage` (which pods
count where), `plugin` (the checks), `texts`.

Further modules: admission, built_in, command, pod_admission, preemption, profiles, revoking, status, what_if.
"""
