"""What Koordinator's admission webhooks do, done by the server itself and in their words.

Read quotas.py (ElasticQuotas), profiles.py (ClusterColocationProfiles write new pods anew), then pods.py (which pods
are refused)."""
