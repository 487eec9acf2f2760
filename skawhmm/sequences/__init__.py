"""What users pass: containers of sequences, checks, steps before the models."""
