"""The families of states that have a short name."""

from types import MappingProxyType

from skawhmm.emissions._base import Emission
from skawhmm.emissions._bernoulli import Bernoulli
from skawhmm.emissions._blocks import json_options
from skawhmm.emissions._by_channel import ByChannel
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._gamma import Gamma
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._negative_binomial import NegativeBinomial
from skawhmm.emissions._poisson import Poisson
from skawhmm.emissions._student import StudentT
from skawhmm.emissions._vonmises import VonMises
from skawhmm.utils._checks import shown_value

FAMILIES = MappingProxyType(
    {
        family.name: family
        for family in (
            Gaussian,
            Categorical,
            Poisson,
            Gamma,
            VonMises,
            Bernoulli,
            NegativeBinomial,
            StudentT,
        )
    }
)

# The families that files may hold.
STORED_FAMILIES = MappingProxyType({**FAMILIES, ByChannel.name: ByChannel})


def stored_template(template, learned):
    """Return a template as JSON holds it, or unchanged if no file can hold it.

    Parameters
    ----------
    template : Emission
        The template of a user.

    learned : Emission
        The family of models that were fitted with it.

    Returns
    -------
    stored : dict or Emission
        Its name and its options; blocks of channels with what they have learned.
    """
    if type(template) is ByChannel:
        return {"family": template.name, "options": learned.stored_options}
    if type(template) is FAMILIES.get(template.name):
        return {"family": template.name, "options": json_options(template)}
    return template


def template_from(stored):
    """Return the template of `stored_template`."""
    family, options = STORED_FAMILIES[stored["family"]], stored["options"]
    return family.from_stored(options) if family is ByChannel else family(**options)


def check_emission(name, value):
    """Return the template that the parameter `emission` stands for, or raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : str or Emission
        Short name of a family, or a template.

    Returns
    -------
    template : Emission
        The template; its options are not checked.
    """
    if isinstance(value, Emission):
        return value
    if isinstance(value, str) and value in FAMILIES:
        return FAMILIES[value]()
    names = ", ".join(map(repr, FAMILIES))
    if isinstance(value, type) and issubclass(value, Emission):
        raise TypeError(
            f"{name} must be one of {names} or an instance of Emission, got the class "
            f"{value.__name__}. Pass an instance: {value.__name__}()."
        )
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(
        f"{name} must be one of {names} or an instance of Emission, such as "
        f"Gaussian('full'), got {shown_value(value)}."
    )
