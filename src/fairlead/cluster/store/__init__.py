"""The embedded API's storage: versioned objects, watches, patches, deletion and the journal on disk.

Reading order: store (objects and their versions), verbs (how a request becomes a new object), history (what watches
get), patch and strategic, deletion, eviction, subresources, selection and paging (lists), journal (durability),
schema with typetable and quantities (decoding), snapshot and redaction, storeapi (the port over a Store).

Further modules: autoscaler_versions, binding_room, commits, conversion, definition_cleanup, journal_format,
journal_pages, journal_repair, known_specs, object_table, owners, reserve, retention, snapshot_redaction, start.
"""
