"""Blocks of channels: checks, columns, options, and all errors about them."""

from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from skawhmm.emissions._base import Emission
from skawhmm.utils._checks import check_real, is_integer, shown_value

# What a family must define to be one of several blocks.
MEMBERS = ("log_densities", "statistics", "update", "common_states", "log_prior")


@contextmanager
def in_block(name):
    """Say in which block an error was found."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Block {name!r}: {error}") from error


def check_blocks(blocks):
    """Raise unless blocks are a list of names, families and columns."""
    if not isinstance(blocks, list | tuple) or not blocks:
        raise TypeError(
            "blocks must be a list of (name, family, columns) tuples, got "
            f"{shown_value(blocks)}."
        )
    for n, block in enumerate(blocks):
        if not isinstance(block, list | tuple) or len(block) != 3:
            raise TypeError(
                f"blocks[{n}] must be a tuple (name, family, columns), got "
                f"{shown_value(block)}."
            )
        _check_name(f"blocks[{n}]", block[0])
        check_block_family(block[0], block[1])
    names = [block[0] for block in blocks]
    if len({*names}) < len(names):
        raise ValueError(f"The names of blocks must be distinct, got {names}.")


def _check_name(where, name):
    if not isinstance(name, str) or not name or "__" in name or {*name} & {*"./\\"}:
        raise ValueError(
            f"{where} must have a name without '__', '.' and '/', got "
            f"{shown_value(name)}."
        )
    if name in {"blocks", "scale"}:
        raise ValueError(
            f"{where} must not have the name of a parameter of ByChannel, got {name!r}."
        )


def check_block_family(name, family):
    """Raise unless a family can be one of several blocks, and its options are valid."""
    if isinstance(family, type) and issubclass(family, Emission):
        raise TypeError(
            f"Block {name!r} must have an instance of Emission, got the class "
            f"{family.__name__}. Pass an instance: {family.__name__}()."
        )
    is_block = isinstance(family, Emission) and family.name != "by_channel"
    if not is_block or not all(hasattr(family, member) for member in MEMBERS):
        raise TypeError(
            f"Block {name!r} must have a family of states that can be fitted, such as "
            f"Gamma() or Gaussian(), not its name, got {shown_value(family)}."
        )
    kind = getattr(family, "covariance_type", "diag")
    if kind in {"spherical", "tied"}:
        raise ValueError(
            f"Block {name!r} must have covariance_type 'diag' or 'full', got {kind!r}."
        )
    with in_block(name):
        family.check_options()


def check_scale(scale, names):
    """Raise unless a scale is "spread", None, or holds a number per block."""
    if scale is None or (isinstance(scale, str) and scale == "spread"):
        return
    if not isinstance(scale, Mapping):
        kind = ValueError if isinstance(scale, str) else TypeError
        raise kind(
            "scale must be 'spread', None or a dict with a number per block, got "
            f"{shown_value(scale)}."
        )
    if {*scale} != {*names}:
        raise ValueError(
            f"scale must have the blocks {names} as keys, got "
            f"{sorted(map(str, scale))}."
        )
    for name, value in scale.items():
        check_real(f"scale[{name!r}]", value, 0, np.inf, include_low=False)


def resolved_columns(blocks, n_features, names=None):
    """Return the columns of each block as lists of indices.

    Parameters
    ----------
    blocks : list of tuple
        Checked blocks.

    n_features : int or None
        Number of channels. None only replaces names.

    names : sequence of str, default=None
        Names of the channels.

    Returns
    -------
    columns : list
        The columns of each block; each channel is in one of them.
    """
    found = [
        _by_name(name, columns, names) if n_features is None else columns
        for name, _, columns in blocks
    ]
    if n_features is None:
        return found
    found = [
        _indices(name, columns, n_features)
        for (name, _, _), columns in zip(blocks, found, strict=True)
    ]
    for (name, family, _), columns in zip(blocks, found, strict=True):
        if family.name == "categorical" and len(columns) != 1:
            raise ValueError(
                f"Block {name!r} must have one column of symbols, got {columns}."
            )
    owners: dict[int, str] = {}
    for (name, _, _), columns in zip(blocks, found, strict=True):
        for column in columns:
            if column in owners:
                raise ValueError(
                    f"Each column must be in one block, got column {column} in "
                    f"{owners[column]!r} and {name!r}."
                )
            owners[column] = name
    left = [column for column in range(n_features) if column not in owners]
    if left:
        raise ValueError(
            f"Each column must be in a block, got columns {left} of {n_features} in "
            "none. Leave them out of the sequences if they are not to be modelled."
        )
    return found


def _by_name(block, columns, names):
    """Return columns, with names replaced by indices."""
    single = isinstance(columns, str)
    is_list = isinstance(columns, list | tuple | np.ndarray)
    wanted: Any = [columns] if single else columns
    if not single and not (is_list and any(isinstance(c, str) for c in columns)):
        return columns
    if names is None:
        raise ValueError(
            f"Block {block!r} has columns by name, {[*wanted]}, which needs sequences "
            "with names, such as data frames."
        )
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(
            f"Block {block!r} must have columns among {[*names]}, got {unknown[0]!r}."
        )
    return [[*names].index(name) for name in wanted]


def _indices(block, columns, n_features):
    """Return columns as a list of indices from 0."""
    found: Any
    if isinstance(columns, slice):
        found = [*range(n_features)[columns]]
    elif is_integer(columns):
        found = [columns]
    else:
        found = _by_name(block, columns, None)
        if not isinstance(found, list | tuple | np.ndarray):
            raise TypeError(
                f"Block {block!r} must have columns by index, slice, mask or name, got "
                f"{shown_value(columns)}."
            )
        found = np.asarray(found)
        if found.dtype == bool:
            if found.shape != (n_features,):
                raise ValueError(
                    f"Block {block!r} must have a mask of {n_features} columns, got "
                    f"shape {found.shape}."
                )
            found = np.flatnonzero(found)
        found = found.tolist()
    if not found or not all(is_integer(column) for column in found):
        raise ValueError(
            f"Block {block!r} must have at least one column, given by integers, got "
            f"{found}."
        )
    outside = [c for c in found if not -n_features <= c < n_features]
    if outside:
        raise ValueError(
            f"Block {block!r} must have columns from 0 to {n_features - 1}, got "
            f"{outside[0]}."
        )
    return [int(column) % n_features for column in found]


def json_options(family):
    """Return the options of a family as JSON holds them."""
    options = family.get_params(deep=False)
    return {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in options.items()
    }
