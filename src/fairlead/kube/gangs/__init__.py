"""Gangs of kube profiles: `plugin` (the gate), `placements` (domains to try), `coscheduling_groups` (the status of
scheduler-plugins' PodGroups).
"""
