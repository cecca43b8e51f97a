"""InterPodAffinity: `plugin`, `scores`, `hints`, and the index of pods by term and domain beneath them.

Reading order of the index: `domains`, `selected`, `counts`, `existing`, `finding`, `workloads`, `index`.
"""
