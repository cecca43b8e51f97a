"""Records of the API's objects, compiled once from their documents, and the messages that controllers exchange.

Reading order: flow (Controller, Change, Write, Reply), kinds (what the API serves), pod and shape (a pod, and what
pods of one template share), node, reasons (why something was refused), explanation. The others lie side by side: one
kind of object or one arithmetic each, such as quantity, selectors, group, storage, queues.
"""
