"""Formulas as MathML, which browsers draw without a script."""

import re

from latex2mathml.converter import convert

# Pairs of brackets with a fixed size: the browser fits them to their contents.
OPENING = re.compile(r"\\[bB]igg?l(?![a-zA-Z])")
CLOSING = re.compile(r"\\[bB]igg?r(?![a-zA-Z])")
NORM = "<mo>&#x02016;</mo>"
# A logarithm between factors, such as "w log w", which browsers write without a space.
BEFORE_LOG = re.compile(r"(</m(?!o)\w+>)(?=<mi>log</mi>)")
AFTER_LOG = re.compile(r"(<mi>log</mi>)(?=<m(?!o))")
SPACED = r'\1<mspace width="0.17em" />'


def mathml(text, display):
    """Return a LaTeX formula as MathML, or raise if a part of it is not understood.

    `display` is "inline" or "block".
    """
    text = CLOSING.sub(r"\\right", OPENING.sub(r"\\left", text))
    text = text.replace(r"\textstyle", "")
    # Bars of a norm are not known as a pair, and would grow with what is beside them.
    written = convert(text, display=display).replace(
        NORM, NORM.replace("<mo>", '<mo stretchy="false">')
    )
    written = AFTER_LOG.sub(SPACED, BEFORE_LOG.sub(SPACED, written))
    if "\\" in written:
        raise ValueError(f"The formula {text!r} cannot be written as MathML.")
    return written
