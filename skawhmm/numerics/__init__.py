"""Transport, forward-backward, paths and stationary laws, on arrays only."""
