"""One scheduling attempt of a pod, and its way to the API.

Reading order: attempt (an attempt from PreFilter to Permit), placement (the choice of a node), run (equal pods in
sequence), outcome (how an attempt can end), binding (PreBind to PostBind, as writes and replies), evictions (victims of
preemption), events (Event objects).
"""
