"""`fairlead vcctl`: Volcano's command line. Read `command` first; `flags` reads arguments, the others do the work.

Modules: job_view, jobs, pods, queues, stored, tree.
"""
