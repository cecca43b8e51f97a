"""`fairlead explain`: commands (the commands, and how a scheduler is found and asked), workload (Deployments and their
like, and everything that waits), pod_text, gang_text and queue_text (explanations for people to read).

Modules: device_text, quota_lacks.
"""
