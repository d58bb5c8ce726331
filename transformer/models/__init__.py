"""Saved models: checkpoints, tokenizers, searches over many sentences, maps, import, export."""
