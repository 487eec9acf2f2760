"""Random calls of all public names, and their outcomes.

`draw` makes data, containers and models, `channels` those of all families, `params`
makes parameters, `uses` lists what is done with them. `effects` knows what parameters
change, with the data of `effect_data` and the values of `effect_values`. `kinds` has
one module per kind of case, which draws a call and the properties that its result must
have. `judge` determines the outcome of a call; an error must name one of the `names` of
its arguments. `pool` runs many calls in separate processes, so that crashes and hangs
are counted.
"""
