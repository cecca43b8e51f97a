"""Long runs against a real API server through a proxy that misbehaves. Nothing in here imports fairlead.

Reading order: proxy (what a network does), cluster (the real API server, spoken to directly), validator (what must
hold, from the API server's own record), stage (a control plane with schedulers), load (pods in both scheduling modes),
scenarios and odd (what happens), overload (fairlead beside kube-scheduler), churn (thirty minutes), __main__ (`make
soak`).
"""
