"""What runs controllers: against the clock of the machine, or on virtual time.

Reading order: worlds (where changes come from), virtual (VirtualRuntime, the shorter of the two), live (LiveRuntime),
writers and write_queue (how writes are performed), questions (how others ask a controller), leader (the lease), then
telemetry, metrics and reporting.

Further modules: api_health, collecting, copies, known_state, lease_chain, loop_thread, one_thread, status, tracing,
usage.
"""
