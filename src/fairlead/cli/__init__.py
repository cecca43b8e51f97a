"""Commands. Each module imports what is heavy inside its command, so that `fairlead --help` is quick.

Reading order: main (the list of commands), up with run (a cluster in this process), scheduler with scheduler_flags and
scheduling (on a real cluster), cluster_access (which cluster a command means); then one module or package per command.

Further modules: about, bugreport, config_commands, demo, device_flags, dumping, embedded, explain, first_objects,
fleet, fleet_file, gate_flags, journal, kubeconfig_file, lab, nodes, observation, plugin_new, record, refusals,
reloading, render, replay, roles, scheduler_config, scheduler_election, scheduler_port, snapshot, status, what_if.
"""
