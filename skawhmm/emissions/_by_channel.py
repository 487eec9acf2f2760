"""States whose channels are of several kinds."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from skawhmm.emissions._base import Emission
from skawhmm.emissions._block_costs import BlockCosts
from skawhmm.emissions._blocks import (
    check_blocks,
    check_scale,
    in_block,
    json_options,
    resolved_columns,
)
from skawhmm.emissions._checks import check_observed
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._model import FrameParts
from skawhmm.emissions._simple import SimpleEmission
from skawhmm.emissions._starts import clustered_posteriors, unit_points
from skawhmm.sequences._checks import check_sequences
from skawhmm.utils._digest import content_digest


class ByChannel(SimpleEmission):
    r"""States that emit several blocks of channels of different kinds.

    Each block of channels has its own family, as columns have transformers in
    :class:`sklearn.compose.ColumnTransformer`. Within a state, blocks are independent.

    Parameters
    ----------
    blocks : list of (str, Emission, columns) tuples
        Name, family and columns of each block. Columns are given by index, as a list
        of indices, a slice or a boolean mask, or by names if the sequences have names.
        Each column must be in exactly one block. A :class:`Categorical` block has one
        column, whose symbols are integers.

    scale : "spread", dict of float, or None, default="spread"
        Divisor of the distances in each block, so that blocks with different units are
        comparable. By default the spread of the frames of a block in the
        training sequences, which `fit` learns: the standard deviation of numbers, and
        likewise half the mean squared distance of two frames for angles and symbols.
        A dict gives the numbers, by block; the smaller, the more a block counts. None
        leaves distances as they are.

    See Also
    --------
    Gamma, VonMises, StudentT, NegativeBinomial, Bernoulli : Families for the blocks.
    Gaussian, Categorical, Poisson : More families.

    Notes
    -----
    The squared distance of two states is the sum over blocks of their squared
    distances over the squared scales,

    .. math::
        d_{ij}^2 = \sum_b d_{b, ij}^2 / s_b^2 .

    A single block is not scaled, nor is a block that does not vary in the training
    sequences. Models store their scales; comparing models with different scales raises
    an error.

    Names of parameters begin with the name of the block:
    ``models.emission.parameters["step.means"]``. ``models.emission.block("step")``
    returns the family of a block.

    Examples
    --------
    An animal that forages, with short steps in all directions, and travels:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import ByChannel, Gamma, VonMises
    >>> rng = np.random.default_rng(0)
    >>> travels = np.arange(400) // 50 % 2
    >>> steps = rng.gamma(2, np.where(travels, 2.0, 0.2))
    >>> turns = rng.vonmises(0, np.where(travels, 5.0, 0.1))
    >>> emission = ByChannel([("step", Gamma(), [0]), ("turn", VonMises(), [1])])
    >>> hmm = HMMTransformer(2, emission=emission, random_state=0)
    >>> models = hmm.fit_transform([np.column_stack([steps, turns])])
    >>> models.emission.block("step").means[0].round(1)
    array([[3.9],
           [0.4]])
    >>> models.emission.block("turn").concentrations[0].round(1)
    array([[6.4],
           [0.2]])
    >>> {name: round(scale, 2) for name, scale in models.emission.scale.items()}
    {'step': 2.59, 'turn': 1.08}
    """

    name = "by_channel"
    accepts_missing = True

    def __init__(self, blocks: Any, *, scale: Any = "spread") -> None:
        self.blocks = blocks
        self.scale = scale

    # Options.

    def check_options(self):
        """Raise if a block or a scale is wrong."""
        check_blocks(self.blocks)
        check_scale(self.scale, [name for name, _, _ in self.blocks])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with the families of blocks and their options.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add families by the names of their blocks, and their options as
            ``block__option``.

        Returns
        -------
        params : dict
            The parameters.
        """
        params = {"blocks": self.blocks, "scale": self.scale}
        if deep:
            for name, family, _ in _tuples(self.blocks):
                params[name] = family
                if isinstance(family, Emission):
                    options = family.get_params(deep=True)
                    params |= {f"{name}__{k}": v for k, v in options.items()}
        return params

    def set_params(self, **params: Any) -> "ByChannel":
        """Set parameters; ``block__option`` sets an option of the family of a block.

        Parameters
        ----------
        **params : dict
            The parameters, by the names of `get_params`.

        Returns
        -------
        self : ByChannel
            The template.
        """
        for key in ("blocks", "scale"):
            if key in params:
                setattr(self, key, params.pop(key))
        names = [name for name, _, _ in _tuples(self.blocks)]
        for key, value in params.items():
            name, _, option = key.partition("__")
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {key!r} for ByChannel. Valid parameters are "
                    f"blocks, scale and the names of blocks, {names}."
                )
            blocks = []
            for block in self.blocks:
                own, family, columns = block
                if own == name and option:
                    family = type(family)(**family.get_params(deep=False))
                    family.set_params(**{option: value})
                elif own == name:
                    family = value
                blocks.append((own, family, columns))
            self.blocks = blocks
        return self

    @property
    def stored_options(self):
        """Options that a file must hold besides the arrays."""
        blocks = [
            [name, family.name, json_options(family), [int(c) for c in columns]]
            for name, family, columns in self.blocks
        ]
        return {"blocks": blocks, "scale": self.scale}

    @classmethod
    def from_stored(cls, options):
        """Return the template with the options that a file holds."""
        from skawhmm.emissions._registry import FAMILIES

        blocks = [
            (str(name), FAMILIES[family](**own), [int(c) for c in columns])
            for name, family, own, columns in options["blocks"]
        ]
        template = cls(blocks, scale=options["scale"])
        template.check_options()
        return template

    @property
    def fingerprint(self):
        """Bytes that differ between families with equal parameters."""
        parts = [
            (name, family.name, family.fingerprint, [int(c) for c in columns])
            for name, family, columns in self.blocks
        ]
        return content_digest((parts, self.scale)).encode()

    @property
    def traits(self):
        """What `repr` shows of the family, by name."""
        scale = self.scale
        if isinstance(scale, Mapping):
            scale = {name: float(f"{value:.3g}") for name, value in scale.items()}
        blocks = ", ".join(f"{name}: {family.name}" for name, family, _ in self.blocks)
        return {
            "emission": self.name,
            "n_features": self.n_features,
            "blocks": blocks,
            "scale": scale,
        }

    # Parameters.

    @property
    def parameter_names(self):  # type: ignore[override]
        """Names of the arrays, each after the name of its block."""
        return tuple(name for group in self.parameter_groups for name in group)

    @property
    def parameter_groups(self):
        """Names of the arrays of each block."""
        return tuple(
            tuple(f"{name}.{part}" for part in family.parameter_names)
            for name, family, _ in self.blocks
        )

    @property
    def parameter_axes(self):  # type: ignore[override]
        """Numbers of axes that the array of one model may have, by parameter."""
        return {
            f"{name}.{part}": axes
            for name, family, _ in self.blocks
            for part, axes in family.parameter_axes.items()
        }

    def largest_value(self, name):  # type: ignore[override]
        """Return the largest absolute value of a parameter."""
        own, _, part = name.partition(".")
        families = {block: family for block, family, _ in self.blocks}
        return families[own].largest_value(part)

    @property
    def n_features(self):
        """Number of channels of a frame."""
        return sum(len(columns) for _, _, columns in self.blocks)

    def of_channel(self, channel):
        """Return the family of one channel."""
        for part, (_, _, columns) in zip(self._parts, self.blocks, strict=True):
            if channel in columns:
                return part.of_channel([*columns].index(channel))
        raise IndexError(channel)

    def block(self, name: str) -> Any:
        """Return the states of one block.

        Parameters
        ----------
        name : str
            Name of the block.

        Returns
        -------
        family : Emission
            The family of the block, with its arrays of parameters.
        """
        names = [own for own, _, _ in self.blocks]
        if name not in names:
            raise ValueError(f"name must be one of the blocks {names}, got {name!r}.")
        return self._parts[names.index(name)]

    @cached_property
    def _parts(self):
        """The families of the blocks, with their arrays."""
        return [
            family.like(*(getattr(self, name) for name in group))
            for (_, family, _), group in zip(
                self.blocks, self.parameter_groups, strict=True
            )
        ]

    def _with_parts(self, parts):
        """Return the family whose blocks have other arrays."""
        arrays = (array for part in parts for array in part.parameters.values())
        return self.like(*arrays, observed=self.observed)

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise if an array of a block is wrong."""
        check_blocks(self.blocks)
        groups = self.parameter_groups
        n_features = sum(
            _width(arrays[group[0]], block[1])
            for group, block in zip(groups, self.blocks, strict=True)
        )
        columns = resolved_columns(self.blocks, n_features)
        parts, blocks = [], []
        for (name, family, _), group, own in zip(
            self.blocks, groups, columns, strict=True
        ):
            given = {key.partition(".")[2]: arrays[key] for key in group}
            with in_block(name):
                part = family.from_arrays(given, is_state)
            parts.append(part)
            blocks.append((name, type(part)(**part.get_params(deep=False)), own))
        scale = None if isinstance(self.scale, str) else self.scale
        return ByChannel(blocks, scale=scale)._with_parts(parts)

    def merged(self, weights):
        """Return the family with states that stand for mixtures of its own."""
        return self._with_parts([part.merged(weights) for part in self._parts])

    def averaged(self, models, labels, masses):
        """Return averages of the matched states of each block."""
        pairs = zip(self._parts, models._parts, strict=True)
        return self._with_parts(
            [own.averaged(other, labels, masses) for own, other in pairs]
        )

    def described(self, channels):
        """Return what a table shows of each state; symbols after their block."""
        return self._state_columns(channels, "described")

    def compared(self, channels):
        """Return what groups of models are compared by, block by block."""
        return self._state_columns(channels, "compared")

    def _state_columns(self, channels, method):
        columns: dict[str, Any] = {}
        for part, (name, _, own) in zip(self._parts, self.blocks, strict=True):
            found = getattr(part, method)([channels[c] for c in own])
            start = f"{name}_" if part.extras else ""
            columns |= {f"{start}{key}": values for key, values in found.items()}
        return columns

    # Sequences.

    def named(self, names):
        """Return the template with names of columns replaced by their indices."""
        check_blocks(self.blocks)
        columns = resolved_columns(self.blocks, None, names)
        blocks = [
            (name, family, own)
            for (name, family, _), own in zip(self.blocks, columns, strict=True)
        ]
        return ByChannel(blocks, scale=self.scale)

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user, as each block checks them."""
        sequences = check_sequences(X, n_features=n_features, caller=caller)
        checked = [np.empty(x.shape) for x in sequences]
        for name, family, columns in self.blocks:
            with in_block(name):
                own = _checked_block(family, _columns(sequences, columns), caller)
            _fill(checked, columns, own)
        return checked

    def learned(self, X, *, caller):
        """Return the template with what its blocks learn, and the checked sequences."""
        sequences = check_sequences(X, caller=caller)
        columns = resolved_columns(self.blocks, sequences[0].shape[1])
        checked, blocks = [np.empty(x.shape) for x in sequences], []
        spreads = {}
        for (name, family, _), own in zip(self.blocks, columns, strict=True):
            with in_block(name):
                part, found = family.learned(_columns(sequences, own), caller=caller)
            _fill(checked, own, found)
            blocks.append((name, part, own))
            spreads[name] = part.spread(found) or 1.0
        scale = self.scale
        if isinstance(scale, str):
            scale = spreads if len(blocks) > 1 else None
        return ByChannel(blocks, scale=scale), checked

    def check_missing(self, sequences, *, is_pooled):
        """Raise if values are missing that the fit of a block needs."""
        for name, family, columns in self.blocks:
            with in_block(name):
                own = _columns(sequences, columns)
                check_observed(own, columns, is_pooled=is_pooled)
                family.check_missing(own, is_pooled=is_pooled)

    def check_scorable(self, sequences):
        """Raise if values are missing that a density needs."""
        for (name, _, columns), part in zip(self.blocks, self._parts, strict=True):
            with in_block(name):
                part.check_scorable(_columns(sequences, columns))

    def shown(self, x):
        """Return a drawn sequence as users see it."""
        values = np.empty(x.shape)
        for (_, _, columns), part in zip(self.blocks, self._parts, strict=True):
            values[:, columns] = part.shown(x[:, columns]).reshape(len(x), -1)
        return values

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        x = np.empty((len(path), self.n_features))
        for (_, _, columns), part in zip(self.blocks, self._parts, strict=True):
            x[:, columns] = part.drawn(i, path, rng)
        return x

    def frames_at(self, i, path, levels):
        """Return the frames of model i at given levels of their distributions."""
        x = np.empty(levels.shape)
        for (_, _, columns), part in zip(self.blocks, self._parts, strict=True):
            x[:, columns] = part.frames_at(i, path, levels[:, columns])
        return x

    def frame_parts(self, x):
        """Return frames as blocks compare them, in units of their scales."""
        return FrameParts.side_by_side(
            [
                part.frame_parts(x[..., columns]).scaled(scale)
                for (_, _, columns), part, scale in zip(
                    self.blocks, self._parts, self._scales(), strict=True
                )
            ]
        )

    # Likelihood and EM.

    def fitted_as(self):
        """Return the template that fits use: the block if it is one of Gaussians."""
        (_, family, columns), *others = self.blocks
        is_plain = isinstance(family, Gaussian) and not others
        return family if is_plain and columns == [*range(len(columns))] else self

    @cached_property
    def _layout(self):
        """Place, form and type of the frames of each block among all values."""
        layout, start = [], 0
        for _, family, columns in self.blocks:
            frames = family.frames(np.ones((1, len(columns))))
            width = 1 if frames.ndim == 1 else frames.shape[1]
            layout.append((start, start + width, frames.ndim, frames.dtype))
            start += width
        return layout

    def frames(self, x):
        """Return the frames of all blocks side by side."""
        parts = (
            family.frames(np.ascontiguousarray(x[:, columns]))
            for _, family, columns in self.blocks
        )
        return np.concatenate([np.reshape(p, (len(x), -1)) for p in parts], axis=1)

    def _block_frames(self, frames):
        """Give the family of each block and its frames."""
        for (_, family, _), (start, stop, n_axes, kind) in zip(
            self.blocks, self._layout, strict=True
        ):
            own = frames[:, start] if n_axes == 1 else frames[:, start:stop]
            yield family, np.ascontiguousarray(own, dtype=kind)

    def _block_states(self, states):
        """Return the states of each block, whose arrays follow each other."""
        found, start = [], 0
        for _, family, _ in self.blocks:
            stop = start + len(family.parameter_names)
            found.append(tuple(states[start:stop]))
            start = stop
        return found

    def densities(self, i, x, start, transmat):
        """Return log densities of a checked sequence, given the chain of model i."""
        return sum(
            part.densities(i, np.ascontiguousarray(x[:, columns]), start, transmat)
            for part, (_, _, columns) in zip(self._parts, self.blocks, strict=True)
        )

    def frame_densities(self, i, x, size):
        """Return log densities that depend on one frame each, to the last bit."""
        parts = [
            part.frame_densities(i, np.ascontiguousarray(x[:, columns]), size)
            for part, (_, _, columns) in zip(self._parts, self.blocks, strict=True)
        ]
        return sum(logs for logs, _ in parts), sum(ranks for _, ranks in parts)

    has_moments = True

    def moments(self, i, size):
        """Return means and covariances; NaN for angles and symbols."""
        means = np.full((size, self.n_features), np.nan)
        covars = np.zeros((size, self.n_features, self.n_features))
        for part, (_, _, columns) in zip(self._parts, self.blocks, strict=True):
            block = np.ix_(range(size), columns, columns)
            if part.has_moments:
                means[:, columns], covars[block] = part.moments(i, size)
            else:
                covars[:, columns] = covars[:, :, columns] = np.nan
        return means, covars

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        pairs = zip(self._block_frames(frames), self._block_states(states), strict=True)
        return sum(family.log_densities(own, part) for (family, own), part in pairs)

    def statistics(self, frames, post, states):
        """Return the statistics of all blocks, one after the other."""
        pairs = zip(self._block_frames(frames), self._block_states(states), strict=True)
        found = [family.statistics(own, post, part) for (family, own), part in pairs]
        self._n_statistics = [len(part) for part in found]
        return tuple(array for part in found for array in part)

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        ends = np.cumsum([0, *self._n_statistics])
        new = []
        for n, ((_, family, _), part, before) in enumerate(
            zip(
                self.blocks,
                self._block_states(states),
                self._block_states(prior),
                strict=True,
            )
        ):
            own = statistics[ends[n] : ends[n + 1]]
            new += family.update(own, part, before, relevance)
        return tuple(new)

    def log_prior(self, states, prior):
        """Return the log prior of one frame of relevance, up to a constant."""
        parts = zip(
            self.blocks,
            self._block_states(states),
            self._block_states(prior),
            strict=True,
        )
        return sum(
            family.log_prior(own, before) for (_, family, _), own, before in parts
        )

    def random_states(self, frames, n_states, rng):
        """Return start values: the states of clusters of frames."""
        points = [
            unit_points(family.cluster_points(own))
            for family, own in self._block_frames(frames)
        ]
        post = clustered_posteriors(np.concatenate(points, axis=1), n_states, rng)
        return self.given_states(frames, post)

    def given_states(self, frames, post):
        """Return states by the probabilities of the states in each frame."""
        parts = self._block_frames(frames)
        return tuple(
            array for family, own in parts for array in family.given_states(own, post)
        )

    def common_states(self, frames):
        """Return one state that stands for all frames."""
        parts = self._block_frames(frames)
        return tuple(a for family, own in parts for a in family.common_states(own))

    def varied(self, frames):
        """Tell whether the frames differ at all."""
        return any(family.varied(own) for family, own in self._block_frames(frames))

    def n_free(self, frames):
        """Return the number of free parameters per state, given the frames."""
        return sum(family.n_free(own) for family, own in self._block_frames(frames))

    # Ground cost.

    def _scales(self):
        """Return the scale of each block."""
        if self.scale is None or isinstance(self.scale, str):
            return [1.0] * len(self.blocks)
        return [float(self.scale.get(name, 1.0)) for name, _, _ in self.blocks]

    def ground_costs(self):
        """Return the costs between the states of any two of the models."""
        return BlockCosts.of_parts(self._parts, self._scales(), len(self._first))

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of states."""
        return self.ground_costs().cross(index_a, index_b)

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) from a to b."""
        return sum(part.divergences(index_a, index_b) for part in self._parts)


def _tuples(blocks):
    """Return the blocks that are tuples of three; others are rejected later."""
    rows = blocks if isinstance(blocks, list | tuple) else []
    return [row for row in rows if isinstance(row, list | tuple) and len(row) == 3]


def _width(array, family):
    """Return the number of channels of a block, given its first array."""
    return 1 if family.name == "categorical" else array.shape[2]


def _columns(sequences, columns):
    """Return some columns of sequences."""
    return [np.ascontiguousarray(x[:, columns]) for x in sequences]


def _checked_block(family, sequences, caller):
    """Return the checked sequences of a block; without any value they stay NaN."""
    is_missing = [bool(np.isnan(x).all()) for x in sequences]
    if not any(is_missing) or not family.accepts_missing:
        return family.checked(sequences, caller=caller)
    if all(is_missing):
        return sequences
    # Errors name sequences by index: another sequence takes the place of a missing one.
    other = sequences[is_missing.index(False)]
    pairs = list(zip(sequences, is_missing, strict=True))
    filled = [other if missing else x for x, missing in pairs]
    found = family.checked(filled, caller=caller)
    return [
        x if missing else own for (x, missing), own in zip(pairs, found, strict=True)
    ]


def _fill(sequences, columns, parts):
    """Write the sequences of a block into their columns."""
    for x, part in zip(sequences, parts, strict=True):
        x[:, columns] = part
