"""Sphinx settings: pydata theme, numpydoc, MyST, and the gallery of examples/."""

import re
import sys
import warnings
from pathlib import Path

from docutils import nodes

import skawhmm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from formulas import mathml  # noqa: E402
from gallery import HEADINGS  # noqa: E402
from inventories import written_inventories  # noqa: E402
from pictures import draw_all, show_picture  # noqa: E402

project = "skawhmm"
author = "The skawhmm developers"
project_copyright = author
release = skawhmm.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/**/*.py", "auto_examples/*.ipynb"]

myst_enable_extensions = [
    "amsmath",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3
# The copy button copies code only: no prompts, no output.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
# Formulas are written as MathML, which browsers render without scripts, in a font that
# these pages include.
html_math_renderer = "mathml"

intersphinx_mapping = written_inventories(HERE / "_build" / "inventories")

default_role = "code"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"../examples/{name}" for name in HEADINGS],
    "within_subsection_order": "gallery.InOrder",
    "thumbnail_size": (480, 336),
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|demo|conftest)\.py",
    "doc_module": ("skawhmm",),
    "backreferences_dir": "api/generated/backreferences",
    "reference_url": {"skawhmm": None},
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
    "download_all_examples": False,
    "matplotlib_animations": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}
# Agg cannot show a window, which `plt.show` at the end of each example asks for.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def short_warning(message, category, *_):
    """Format a warning of an example without the path of its file."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = short_warning

html_theme = "pydata_sphinx_theme"
html_title = "skawhmm"
html_static_path = ["_static"]
html_css_files = ["skawhmm.css"]
html_js_files = ["figures.js"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo-dark.svg",
        "alt_text": "skawhmm",
    },
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# The tutorial and the start page have no bar on the left.
html_sidebars = {"tutorial": [], "index": []}

# Every public name with the package that documents it.
HOMES = {
    name: f"skawhmm.{package}.{name}"
    for package in skawhmm.PACKAGES
    for name in getattr(skawhmm, package).__all__
}

linkcheck_timeout = 20
linkcheck_ignore = [r"^auto_examples"]


def skip_generated(_app, _what, name, obj, skip, _options):
    """Leave out members that scikit-learn generates and documents."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    origin = getattr(obj, "__module__", None) or ""
    return True if callable(obj) and origin.startswith("sklearn") else skip


def quote_attributes(_app, _what, _name, _obj, _options, lines):
    """Quote attributes in shapes: a bare name that ends in "_" is a link to reST."""
    name = "n_features_in_"
    lines[:] = [line.replace(f"({name},)", f"(`{name}`,)") for line in lines]


def write_inline(translator, node):
    """Write an inline formula."""
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def write_block(translator, node):
    """Write a displayed formula."""
    written = mathml(node.astext(), "block")
    translator.body.append(f'<div class="formula">{written}</div>')
    raise nodes.SkipNode


def resolve_bare_name(app, env, node, contnode):
    """Link a public name that a docstring writes without its package."""
    home = HOMES.get(node.get("reftarget"))
    if node.get("refdomain") != "py" or home is None:
        return None
    return env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], home, node, contnode
    )


def setup(app):
    """Connect the handlers above."""
    app.connect("missing-reference", resolve_bare_name)
    # Before numpydoc, which makes reST of the lines.
    app.connect("autodoc-process-docstring", quote_attributes, priority=400)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", show_picture, priority=600)
    app.connect("builder-inited", draw_all)
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
