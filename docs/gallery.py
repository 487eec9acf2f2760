"""Headings of the gallery, and the order of the pages under each of them."""

from pathlib import Path

# Folders of examples/, in order, with the pages that come first.
HEADINGS = {
    "start": ["quickstart", "own_data", "one_model", "registration", "alpha"],
    "order": ["order", "metrics"],
    "groups": ["groups", "sleep_groups", "face_fixations"],
    "explore": ["explorer", "motion_retrieval", "clustering"],
    "classify": ["sounds", "explanation"],
    "scale": ["large_index", "scaling", "monitoring"],
}


class InOrder:
    """Sort the pages of a folder: the ones listed above first, then by name."""

    def __init__(self, folder):
        self.first = HEADINGS.get(Path(folder).name, [])

    def __call__(self, file):
        name = Path(file).stem.removeprefix("plot_")
        known = name in self.first
        return (self.first.index(name) if known else len(self.first), name)
