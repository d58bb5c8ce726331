"""An examination of any Transformer, and a museum of broken ones that tests it."""
