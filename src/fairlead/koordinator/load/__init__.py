"""Load-aware scheduling. Reading order: `settings` (arguments), `estimates` (of one pod), `columns` (sums per node),
`plugin` (filter and score).
"""
