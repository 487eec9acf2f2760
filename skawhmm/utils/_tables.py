"""Small tables: as text, as HTML, as a data frame of pandas."""

from html import escape
from numbers import Integral, Real
from typing import Any

import numpy as np


def data_frame(columns, caller):
    """Return columns as a data frame, or raise if pandas is not installed."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{caller} makes a data frame of pandas, which is not installed: pip "
            "install pandas."
        ) from error
    return pd.DataFrame(columns)


def text_table(columns):
    """Return columns as text, with numbers aligned to the right."""
    blocks = []
    for name, values in columns.items():
        texts = [name, *map(shown, values)]
        width = max(map(len, texts))
        left = all(isinstance(value, str) for value in values)
        blocks.append([t.ljust(width) if left else t.rjust(width) for t in texts])
    return "\n".join("  ".join(row).rstrip() for row in zip(*blocks, strict=True))


def html_table(columns, caption):
    """Return columns as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = (
        "".join(f"<td>{escape(shown(value))}</td>" for value in row)
        for row in zip(*columns.values(), strict=True)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def shown(value: Any) -> str:
    """Return a value as a short text; NaN becomes empty."""
    if not isinstance(value, Real) or isinstance(value, Integral):
        return str(value)
    number = float(value)
    return "" if np.isnan(number) else f"{number:.4g}"
