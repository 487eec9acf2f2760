r"""Conformal p-values of successive scores, and their evidence of a change.

If scores are exchangeable, the smoothed p-values of successive scores, each among all
scores so far, are independent and uniform. A bet :math:`f` with :math:`\int_0^1 f = 1`
then has mean 1 given the past, and the evidence :math:`R_n = (R_{n-1} + 1) f(p_n)`
satisfies :math:`E[R_n \mid \text{past}] = R_{n-1} + 1`. The user guide proves this and
the resulting bound on false alarms.
"""

import numpy as np

# Exponents of the bets eps * p ** (eps - 1): small ones win most if a p-value is very
# small, large ones if many are somewhat small.
EXPONENTS = np.array([0.1, 0.2, 0.4, 0.7])

# Weights of the bets. The first bet is on p-values so small that a single one raises an
# alarm.
WEIGHTS = np.array([0.4, 0.15, 0.15, 0.15, 0.15])

# Number of scores kept individually. Beyond it, neighbouring scores are merged into
# cells that hold at most CELL_FRACTION of the scores above them: p-values are then too
# large by at most this fraction, and memory grows with the logarithm of time.
MOST_CELLS = 4096
CELL_FRACTION = 0.01


class Ranks:
    """The scores so far, among which the next one is ranked.

    Cells are in increasing order. A cell holds `counts` scores between `lows` and
    `highs`.
    """

    def __init__(self, scores):
        self.lows = np.sort(np.asarray(scores, float))
        self.highs = self.lows.copy()
        self.counts = np.ones(len(self.lows), np.int64)

    def pvalue(self, score, uniform):
        """Return the smoothed p-value of the next score.

        Parameters
        ----------
        score : float
            The larger, the more unusual.

        uniform : float in (0, 1]
            Random number that breaks ties, including the tie of the score with itself.

        Returns
        -------
        pvalue : float in (0, 1]
            Fraction of scores above this one. Scores in the same cell count as above.
        """
        equal = (self.lows == score) & (self.highs == score)
        above = self.counts[(self.highs >= score) & ~equal].sum()
        equal = self.counts[equal].sum()
        return float((above + uniform * (equal + 1)) / (self.counts.sum() + 1))

    def add(self, score):
        """Add a score."""
        k = int(np.searchsorted(self.highs, score))
        if k < len(self.lows) and self.lows[k] <= score:
            self.counts[k] += 1
            return
        # `np.insert` is several times slower.
        self.lows, self.highs, self.counts = (
            np.concatenate([x[:k], np.array([new], x.dtype), x[k:]])
            for x, new in ((self.lows, score), (self.highs, score), (self.counts, 1))
        )
        if len(self.counts) > MOST_CELLS:
            self._merge()

    def _merge(self):
        """Merge neighbouring cells, from the largest scores down."""
        firsts, above, inside = [], 0, 0
        for k in range(len(self.counts) - 1, -1, -1):
            count = int(self.counts[k])
            if inside + count > max(1.0, CELL_FRACTION * above) and inside:
                firsts.append(k + 1)
                above, inside = above + inside, 0
            inside += count
        begins = np.array([0, *firsts[::-1]])
        ends = np.append(begins[1:], len(self.counts)) - 1
        self.counts = np.add.reduceat(self.counts, begins)
        self.lows, self.highs = self.lows[begins], self.highs[ends]


class Evidence:
    """Evidence of a change in successive p-values: Shiryaev-Roberts sums of bets.

    Parameters
    ----------
    false_alarm_rate : float
        An alarm is raised when the evidence reaches the reciprocal of this rate.

    Attributes
    ----------
    sums : ndarray of shape (n_bets,)
        Evidence from each bet.

    restarted : float
        Time of the last restart.

    runs, since : ndarray of shape (n_bets,)
        The largest product of bets over a run that ends now, and the time at which the
        run begins.
    """

    def __init__(self, false_alarm_rate):
        self.instant = WEIGHTS[0] * false_alarm_rate
        self.restart()

    def restart(self, time=-np.inf):
        """Discard all evidence before a time, as after an alarm."""
        self.restarted = time
        self.sums = np.zeros(len(WEIGHTS))
        self.runs = np.zeros(len(WEIGHTS))
        self.since = np.zeros(len(WEIGHTS))

    def add(self, pvalue, time):
        """Add a p-value and its time; return the evidence."""
        gains = self.gains(pvalue)
        self.since = np.where(self.runs > 1, self.since, time)
        self.runs = np.maximum(self.runs, 1) * gains
        self.sums = (self.sums + 1) * gains
        return float(WEIGHTS @ self.sums)

    def gains(self, pvalue):
        """Return the factor of each bet at a p-value; its mean over p-values is 1."""
        won = float(pvalue <= self.instant) / self.instant
        return np.append(won, EXPONENTS * pvalue ** (EXPONENTS - 1))

    @property
    def began(self):
        """Time since when the evidence has grown."""
        return float(self.since[np.argmax(WEIGHTS * self.sums)])
