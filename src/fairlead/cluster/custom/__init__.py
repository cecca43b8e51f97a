"""Kinds that users define: CustomResourceDefinitions and the objects made under them."""
