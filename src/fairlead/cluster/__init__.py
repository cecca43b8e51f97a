"""The Kubernetes API from both sides: as a client of a real server, and as a server of our own.

Reading order: port (ClusterApi, all that the rest of the code knows of either), store/ (objects, versions, watches),
admission/ (defaults and validation), server/ (the Store over HTTPS), client/ (a real API server); then ownership/
(server-side apply), custom/ (kinds that users define), tables/ (what kubectl prints), outside/ (extenders, metrics).
Beside it act controllers/ and kubelets/; housekeeping is the list of all controllers, and the rules for one more.
"""
