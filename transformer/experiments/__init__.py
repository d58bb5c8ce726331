"""Long experiments as short lists of settings for one runner, and what is read from their records
in data/runs.
"""
