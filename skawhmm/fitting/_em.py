"""The prior of chains in EM."""

import numpy as np

# Logarithms of smaller transition probabilities count as that of this one.
LEAST_TRANSITION = 1e-100


def chain_log_priors(model, prior, active):
    """Return the logs of the priors of chains, per step of relevance.

    Parameters
    ----------
    model, prior : Model
        Stacks of models: where the prior is taken; its chain, one for each or for all.

    active : ndarray of int of shape (n_active,)
        Which models.

    Returns
    -------
    values : ndarray of shape (n_active,)
        One per model, up to a constant.
    """
    values = np.zeros(len(active))
    for part in ("startprob", "transmat"):
        law, shares = getattr(model, part), getattr(prior, part)
        logs = np.log(np.maximum(law[active], LEAST_TRANSITION))
        shares = shares[np.minimum(active, len(shares) - 1)]
        terms = np.where(shares > 0, shares * logs, 0.0)
        values += terms.sum(axis=tuple(range(1, terms.ndim)))
    return values
