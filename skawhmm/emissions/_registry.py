"""The families of states by name. A new family is a class and a line here."""

from skawhmm.emissions._base import Emission
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._poisson import Poisson

FAMILIES: dict[str, type[Emission]] = {
    family.name: family for family in (Gaussian, Categorical, Poisson)
}


def family_of_hmmlearn(models):
    """Return the family that fitted models of hmmlearn belong to.

    Parameters
    ----------
    models : list of hmmlearn models
        All of one kind.

    Returns
    -------
    family : type
        The family; Gaussian if none is recognised, because its error message fits best
        then.
    """
    for family in FAMILIES.values():
        attribute = family.hmmlearn_attribute
        if len(models) and attribute and hasattr(models[0], attribute):
            return family
    return FAMILIES["gaussian"]
