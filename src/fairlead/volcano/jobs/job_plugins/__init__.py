"""Job plugins: what a Volcano Job requests by name under `spec.plugins`. Read `job_plugin` first, then `catalogue`."""
