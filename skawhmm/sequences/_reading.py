"""Helpers shared by the readers of tables and the readers of arrays."""

from skawhmm.sequences._checks import check_sequences
from skawhmm.sequences._names import named_sequences, valid_names
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences


def refuse_names(names, roles, what):
    """Raise if columns are named for data without columns."""
    for role in roles:
        if names[role] is not None:
            raise ValueError(
                f"{role} must be None for {what}, which has no names, got "
                f"{names[role]!r}."
            )


def refuse_layout(layout, what):
    if layout != "time_first":
        raise ValueError(f"layout must be 'time_first' for {what}, got {layout!r}.")


def listed(name):
    """Return a name, several or none as a list."""
    if name is None:
        return []
    return [*name] if isinstance(name, list | tuple) else [name]


def label_columns(labels, read):
    """Return ``read(column)``, or a dict of results for a list of columns."""
    if labels is None:
        return None
    if isinstance(labels, list | tuple):
        return {name: read(name) for name in labels}
    return read(labels)


def read_sequences(sequences, columns=None):
    """Return checked sequences with the names of their columns."""
    if holds_symbols(sequences):
        return symbol_sequences(sequences)
    names = None if columns is None else valid_names(columns)
    return named_sequences(check_sequences(sequences, caller="as_sequences"), names)
