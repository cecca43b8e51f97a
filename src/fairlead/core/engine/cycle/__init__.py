"""One scheduling attempt of a pod, and its way to the API.

Reading order: attempt (from PreFilter to Permit, in one file), placement (the values of a search), nominated, choice
and diagnosis (its parts), run (equal pods in sequence), outcome (how an attempt can end), binding (PreBind to PostBind,
as writes and replies), evictions (victims of preemption), events (Event objects).

Further modules: under_way.
"""
