"""The HTTPS server of the embedded API, and the small server of a scheduler's health, metrics and explanations.

Reading order: server (routes), paths, negotiation and protobuf (what clients send and accept), answers, watching,
discovery, openapi with descriptions, reviews and tokens (access), pki (certificates), ops_server and explaining.

Further modules: asking, listening, parameters, port_guard.
"""
