"""`fairlead status`: how a running scheduler is.

Modules: command.
"""
