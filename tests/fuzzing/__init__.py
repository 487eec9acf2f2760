"""Random calls of everything public, and what may come of them.

`draw` makes data, containers and models, `params` parameters, `uses` says what is done
with them. `effects` knows what parameters change, with the data of `effect_data` and
the values of `effect_values`. `kinds` has one module per kind of case, which makes a
call of these, with the laws that its result must obey. `judge` tells what came of a
call; an error must name one of the `names` of its arguments. `pool` runs many calls in
processes of their own, so that crashes and hangs are counted.
"""
