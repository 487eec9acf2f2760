"""JAW: states registered as in MAW, the two ends of a step registered jointly."""

from skawhmm.distances._maw import MAW


class JAW(MAW):
    """Jointly aggregated Wasserstein distance: both ends of a step move together.

    States are registered as in :class:`MAW`. MAW registers the two ends of a step
    independently: as soon as two models give their states different probabilities, the
    registration splits states, and a chain that stays in its state becomes one that
    jumps. Here one random map of states transfers both ends. Choose it if the order of
    the frames matters. ``JAW()`` equals ``MAW(0.5, steps="joint")``.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.5
        Weight of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    steps : {"independent", "joint"}, default="joint"
        Whether the two ends of a step are registered together, or independently,
        as in :class:`MAW`. Only for ``registration="transport"``.

    rows : {"transport", "hellinger"}, default="transport"
        Whether the rows of two transition matrices are compared by optimal transport
        of the next states or by the squared Hellinger distance, which sees rare
        transitions and has no unit.

    registration : {"transport", "identity"}, default="transport"
        How transitions are transferred. With "identity", state 1 of a model stands for
        state 1 of every other model, and so on: rows are compared directly. It is for
        models that share their states, such as visible chains and models that start
        from a pooled one; all must have the same number of states. The marginal
        component uses optimal transport in either case.

    See Also
    --------
    MAW : The distance of the paper.

    Notes
    -----
    Where each state of one model is registered with one state of the other, both ways,
    the distance equals MAW at the same `alpha`.

    Examples
    --------
    Two models have the same states, and both leave each state with probability 0.1. The
    second model spends more time in its first state. MAW also reports this as a
    difference between the transitions; JAW hardly does (marginal, transition):

    >>> import numpy as np
    >>> from skawhmm import JAW, MAW, HMMBatch, pairwise_hmm_components
    >>> models = HMMBatch(
    ...     transmats=[
    ...         [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
    ...         [[0.9, 0.05, 0.05], [0.1, 0.9, 0.0], [0.1, 0.0, 0.9]],
    ...     ],
    ...     means=[[[0.0], [5.0], [10.0]], [[0.0], [5.0], [10.0]]],
    ...     covars=np.ones((2, 3, 1)),
    ... )
    >>> for metric in (MAW(), JAW()):
    ...     marginal, transition = pairwise_hmm_components(models, metric=metric)
    ...     print(marginal[0, 1].round(2), transition[0, 1].round(2))
    1.25 2.77
    1.25 0.34
    """

    def __init__(
        self,
        alpha: float = 0.5,
        p: float = 1,
        *,
        steps: str = "joint",
        rows: str = "transport",
        registration: str = "transport",
    ) -> None:
        super().__init__(alpha, p, steps=steps, rows=rows, registration=registration)

    @property
    def _kind(self) -> type:
        # JAW differs from MAW only in its defaults.
        return MAW if type(self) is JAW else type(self)
