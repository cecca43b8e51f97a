"""Kinds that users define: CustomResourceDefinitions and the objects made under them.

Modules: catalog, declared, definitions, expressions, field_paths, formats, rule_checks, rules, structural, typed.
"""
