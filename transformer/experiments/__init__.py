"""The long runs: lists of settings for one runner, and what is kept of them in data/runs."""
