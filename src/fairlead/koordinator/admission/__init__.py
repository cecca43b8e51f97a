"""What Koordinator's admission webhooks do, done by the server itself and in their words.

Read quotas.py (ElasticQuotas), profiles.py (ClusterColocationProfiles write new pods anew), quota_pods.py (what a quota
does to new pods), then pods.py (which pods are refused).

Modules: hooks.
"""
