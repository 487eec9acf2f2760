"""Random calls of everything public, and what may come of them.

`draw` makes data, containers, models and parameters; `kinds` makes calls of them, each
with the laws that its result must obey; `judge` tells what came of a call; `pool` runs
many of them in processes of their own, so that crashes and hangs are counted.
"""
