"""Pictures of one theme each: they take numbers and words, and compute no result."""
