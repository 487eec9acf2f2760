"""Groups of models: tests, alignment, tables, effects, uncertainty."""
