"""`fairlead controllers`, and the flags of Volcano that other commands take.

Read `flags`, `controller_choice` (names), `controllers` (the command), `controller_port`.
"""
