"""DefaultPreemption: `plugin` (the search), `victims` (who goes from one node), `victim_cache` (victims kept up to date
per node), `gang_victims` (for whole gangs).
"""
