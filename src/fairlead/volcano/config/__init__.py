"""Volcano's scheduler configuration: read, checked for traps, and built into tiers.

Reading order: `records`, `reading`, `arguments`, `options`, `devices`, `build`, `presets`, `setup` (what the commands
hand on), `objects`; `traps` with `group_traps` and `queue_traps` (`fairlead config check`); `command`.

Further modules: controller_settings, waiting_queues.
"""
