"""Other servers that scheduling asks: HTTP extenders, and sources of node metrics."""
