"""CPUs per NUMA node, as Volcano's numa-aware plugin gives them out: numa_aware (the plugin), hints, views."""
