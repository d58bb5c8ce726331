"""The report of a checkup as a page, with pictures of what leaks."""

import base64
import html

import matplotlib.pyplot as plt
import numpy as np

from transformer.doctor.report import WORST_FIRST, Finding, Report
from transformer.views.style import DPI, WARNING, Picture, panels, png, weights_map
from transformer.views.widget import SCREEN, Widget, brief, fill, live, width_of

ROUNDING = 1e-4  # below it a change is white
AXES = {  # of the organs that are drawn: what stands along, and whether red marks a leak
    "future": ("a target token is changed", True),
    "past": ("a target token is changed", False),
    "source": ("a source token is changed", False),
}


def leak(finding: Finding) -> Picture:
    """How much each row of scores moves with each token; red above the diagonal."""
    table = np.array(finding.table)
    along, causal = AXES[finding.organ]
    figure, axes = panels(3.2, 2.9)
    ax = axes[0, 0]
    shown = np.where(
        table > ROUNDING, np.maximum(table / max(table.max(), 1e-9), 0.15), 0
    )
    ax.imshow(shown, cmap=weights_map(), vmin=0, vmax=1.3)
    forbidden = np.argwhere(np.triu(table > ROUNDING, 1)) if causal else []
    for row, column in forbidden:
        ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, color=WARNING))
    ax.set(xlabel=along, ylabel="row of scores")
    count = len(forbidden)
    figure.alternative = (
        f"{len(table)} rows of scores, {len(table[0])} columns; "
        f"{int((table > ROUNDING).sum())} squares are filled"
        + (f", {count} of them above the diagonal, in red." if causal else ".")
    )
    plt.close(figure)
    return figure


def drawn(finding: Finding) -> str:
    """The picture of a finding as HTML; nothing where there is none."""
    if finding.table is None or finding.organ not in AXES:
        return ""
    if finding.verdict == "healthy" and finding.organ != "future":
        return ""
    picture = leak(finding)
    data = png(picture)
    width = width_of(data) * SCREEN // DPI
    code = base64.b64encode(data).decode()
    alt = html.escape(picture.alternative)
    return f'<img src="data:image/png;base64,{code}" alt="{alt}" width="{width}">'


def article(finding: Finding) -> str:
    """One finding as HTML."""
    kind = finding.verdict.replace(" ", "-")
    seen, means, read = map(html.escape, (finding.seen, finding.means, finding.read))
    ill = finding.verdict in ("broken", "look")
    more = f"<p>{means}</p><small>Read: {read}.</small>" if ill else ""
    title = f"<h2><b>{finding.verdict}</b> {html.escape(finding.organ)}</h2>"
    return (
        f'<article class="{kind}">{title}<p>{seen}</p>{more}{drawn(finding)}</article>'
    )


def checkup_page(report: Report) -> Widget:
    """A `Report` as a page that is complete in itself, the worst findings first."""
    findings = sorted(report.findings, key=lambda f: WORST_FIRST.index(f.verdict))
    summary = str(report).splitlines()[-1]
    page = fill(
        "checkup.html",
        brief(f"{live('kit.css')}{live('checkup.css')}"),
        "",
        title="Checkup",
        summary=html.escape(summary),
        findings="\n".join(map(article, findings)),
    )
    return Widget(page, 640, "Checkup", summary)
