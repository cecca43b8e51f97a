"""Pod groups that start with their minimum or not at all, as kube-scheduler does it.

Reading order: driver (a gang from its turn to its last bind), assembly (one attempt at a whole gang), domain_search
(the rack, zone or HyperNode that takes it), result (how an attempt ended).
"""
