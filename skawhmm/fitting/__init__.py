"""From sequences to models: start values, EM, pooled models, the transformer."""
