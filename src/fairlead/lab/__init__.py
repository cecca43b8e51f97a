"""The laboratory: experiments of the literature on the same table, statements and plugins as the scheduler.

Reading order: `omega/` has several schedulers on one cell, `queues/` batch policies on a pool of GPUs, `fragmentation/`
the placement policies of the FGD paper, and `reference/` holds all of them to recorded runs of the original programs.
"""
