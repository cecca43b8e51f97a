"""NodeResourcesFit and its relatives: `plugin` (filter and scores), `free_amounts` (what is free, as sorted columns),
`hints` (which events can help), `placement_fit` (scores of gangs).
"""
