"""Records of the API's objects, compiled once from their documents, and the messages that controllers exchange.

Reading order: flow (Controller, Change, Write, Reply), kinds (what the API serves), pod and shape (a pod, and what
pods of one template share), node, reasons (why something was refused), explanation. The others lie side by side: one
kind of object or one arithmetic each, such as quantity, selectors, group, storage, queues.

Further modules: attendance, budgets, config_maps, containers, device_claims, devices, durations, events, figures,
gang_explanation, hashes, html_tables, lack, namespaces, number_sets, owner_sizes, owners, pod_volumes, priorities,
quality, quirk, quota, records, requests, requirements, rolling, selector_text, syntax, taints, terms, times, usage,
workload_selectors.
"""
