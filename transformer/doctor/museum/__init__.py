"""Models with one real bug each, and healthy ones; see `exhibits` and `healthy`."""
