"""JobFlows, JobTemplates and CronJobs of Volcano: `flows`, `cron`, and their `admission`."""
