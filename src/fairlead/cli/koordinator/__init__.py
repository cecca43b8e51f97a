"""Commands about Koordinator: quota.py shows its quotas, descheduler.py moves pods in its descheduler's place."""
