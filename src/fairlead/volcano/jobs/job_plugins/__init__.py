"""Job plugins: what a Volcano Job asks for by name under `spec.plugins`. Read `job_plugin` first, then `catalogue`.

Modules: env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow.
"""
