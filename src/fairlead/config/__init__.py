"""From files to profiles: KubeSchedulerConfiguration, Volcano's configuration and Policy, with all their errors.

Reading order: source (YAML with lines) and problems (what is told about it); kube, kube_document, kube_validation and
kube_build (kube-scheduler's file); volcano, volcano_build and volcano_traps (Volcano's); registry and factories (names
to plugins), assemble (a configuration to Profiles), schedulers (Profiles to a Scheduler).
"""
