"""Which rights on a cluster a process needs, and which of them it lacks.

Read `grants` (one row per verb and resource), then `needs` (which rows a task takes) and `review` (what a starting
process logs about rights that it lacks).
"""
