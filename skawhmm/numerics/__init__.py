"""Transport, forward-backward, paths and stationary distributions, on arrays only."""
