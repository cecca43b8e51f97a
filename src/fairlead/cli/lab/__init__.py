"""`fairlead lab`: the laboratory's commands.

Modules: command, progress, racing, scenarios.
"""
