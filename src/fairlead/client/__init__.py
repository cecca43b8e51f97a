"""The client of a real API server.

Reading order: client (requests and watches), exchanges and answers (how writes are sent and answered), credentials
(kubeconfig and service accounts), lines (watch streams), reflector (list, then watch, then list again when needed),
mirror (what has been seen), retry (delays).

Further modules: addresses, authorization, deadlines, node_metrics, port, retries, silence, sockets, threaded_work.
"""
