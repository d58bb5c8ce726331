"""A training run: what it learns from, its folder, its plan, from beginning to end."""
