"""Jupyter's configuration for authors (`make edit`): new cells are tagged before they are saved."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pairs  # noqa: E402

get_config().FileContentsManager.pre_save_hook = pairs.tag_saved  # noqa: F821
