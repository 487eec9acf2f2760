"""Sequences of models with Gaussian states, in the arrays that the kernels read.

Sequences whose arrays have the same shapes go through the kernels together.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skawhmm.emissions._model import Data
from skawhmm.fitting._coordinates import Coordinates, make_coordinates


@dataclass(frozen=True)
class Group:
    """Sequences that go through the kernels together.

    Attributes
    ----------
    members : ndarray of shape (n_sequences,)
        Numbers of the sequences in the pool.

    coordinates : Coordinates
        Coordinates of each sequence, or the same for all.

    points, seen : ndarray of shape (n_active, n_frames)
        Standardized frames of the sequences, one after the other, and the mask of
        observed values (empty if all are).

    data : Data
        The frames in the coordinates of the fit, in the form that EM reads.
    """

    members: np.ndarray
    coordinates: Coordinates
    points: np.ndarray
    seen: np.ndarray
    data: Data

    @property
    def offsets(self):
        """Where the sequences begin and end."""
        return self.data.offsets


def gaussian_data(frames, seen, offsets, firsts=None):
    """Return frames in the form in which Gaussian states read them.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other, and the mask of observed values (empty if
        all are).

    offsets : ndarray of shape (n_sequences + 1,)
        Where the sequences begin and end.

    firsts : ndarray of int of shape (n_models + 1,), default=None
        Which of the offsets are the bounds of models; by default all.

    Returns
    -------
    data : Data
        The frames of each model, channel by channel, in one flat array.
    """
    firsts = np.arange(len(offsets)) if firsts is None else np.asarray(firsts)
    bounds = offsets[firsts]

    def flat(rows):
        if rows.size == 0:
            return np.empty(0)
        return np.concatenate([rows[:, i:j].ravel() for i, j in pairwise(bounds)])

    return Data(flat(frames), flat(seen), np.asarray(offsets), firsts)


def joined_channels(sequences):
    """Return sequences as one array (n_features, n_frames), and their bounds."""
    channels = np.ascontiguousarray(np.concatenate(sequences).T)
    return channels, np.cumsum([0, *(len(x) for x in sequences)])


def alike(keys):
    """Return the numbers of equal rows, one array per kind of row."""
    if len(keys) == 0:
        return []
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    _, kinds = np.unique(keys, axis=0, return_inverse=True)
    return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]


def chosen_channels(pool, members):
    """Return the channels of some sequences of a pool, and their bounds.

    Parameters
    ----------
    pool : tuple of ndarray
        What `joined_channels` returned.

    members : ndarray of int of shape (n_members,)
        Numbers of the sequences, in increasing order.

    Returns
    -------
    channels, offsets : ndarray
        In the form of the pool.
    """
    channels, offsets = pool
    if len(members) == len(offsets) - 1:
        return pool
    parts = [channels[:, offsets[i] : offsets[i + 1]] for i in members]
    bounds = np.cumsum([0, *(part.shape[1] for part in parts)])
    return np.concatenate(parts, axis=1), bounds


def make_group(members, channels, offsets, coordinates):
    """Return a group of sequences in given coordinates.

    Parameters
    ----------
    members : ndarray of shape (n_sequences,)
        Numbers of the sequences in their pool.

    channels, offsets : ndarray
        What `chosen_channels` returned.

    coordinates : Coordinates
        Coordinates of each sequence, or the same for all.

    Returns
    -------
    group : Group
        The sequences, standardized.
    """
    z, seen = coordinates.standardized(channels, offsets)
    data = gaussian_data(coordinates.frames(z, offsets), seen, offsets)
    return Group(members, coordinates, z, seen, data)


def groups_of(pool, chosen, columns, scales, covariance_type):
    """Yield groups of sequences that are alike.

    Parameters
    ----------
    pool : tuple of ndarray
        What `joined_channels` returned.

    chosen : ndarray of bool of shape (n_sequences,)
        Which sequences to take. Those without a channel that varies are left out.

    columns : list of ndarray of shape (n_sequences,)
        What the members of a group have in common, besides the channels that vary and
        whether values are missing.

    scales, covariance_type : tuple of ndarray and str
        What `channel_scales` returned for the pool, and the covariance type it was
        given.

    Yields
    ------
    group : Group
        Sequences whose arrays have the same shapes, each in coordinates of its own.
    """
    active, _, gappy, *_ = scales
    chosen = np.flatnonzero(chosen & active.any(axis=1))
    keys = np.column_stack([active, gappy.any(axis=1), *columns])
    for rows in alike(keys[chosen]):
        members = chosen[rows]
        channels, offsets = chosen_channels(pool, members)
        own = tuple(scale[members] for scale in scales)
        coordinates = make_coordinates(channels, offsets, own, covariance_type)
        yield make_group(members, channels, offsets, coordinates)
