"""Formulae as MathML, made when the site is built: no script, no network, and screen readers can
say them."""

import html
from pathlib import Path

import math_core
from docutils import nodes
from fontTools import subset
from sphinx.util import logging

FONT = "STIXTwoMath-Regular.ttf"
# What browsers draw without its standing in the text: a single letter as an italic one, Latin or
# Greek; roots
UNWRITTEN = [
    *range(0x1D434, 0x1D468),
    0x210E,
    *range(0x1D6E2, 0x1D71C),
    *range(0x2200, 0x2300),
]
converter = math_core.LatexToMathML()
written = set(map(chr, range(0x20, 0x7F)))  # and all that stands in formulae


def mathml(latex, display, node):
    """A formula as a <math> element; what cannot be converted is shown as it is, with a warning."""
    try:
        element = converter.convert_with_local_state(latex, displaystyle=display)
    except math_core.LatexError as error:
        logging.getLogger(__name__).warning(
            "%s in the formula %s", error, latex, location=node
        )
        return f"<code>{html.escape(latex)}</code>"
    written.update(html.unescape(element))
    return element


def visit_inline(translator, node):
    translator.body.append(mathml(node.astext(), False, node))
    raise nodes.SkipNode


def visit_block(translator, node):
    translator.body.append(
        f'<div class="math">{mathml(node.astext(), True, node)}</div>'
    )
    raise nodes.SkipNode


def write_font(app, error):
    """The mathematical font, cut down to the characters that the formulae need, beside the style
    sheet."""
    import ziamath

    if error:
        return
    target = Path(app.outdir) / "_static" / "math.woff"
    options = subset.Options(layout_features=["*"], flavor="woff", notdef_outline=True)
    font = subset.load_font(
        str(Path(ziamath.__file__).parent / "fonts" / FONT), options
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(written), unicodes=UNWRITTEN)
    subsetter.subset(font)
    subset.save_font(font, str(target), options)


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("build-finished", write_font)
