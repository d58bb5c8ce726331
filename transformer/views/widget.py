"""What every widget is made with: a page that is complete in itself, its frame, its picture.

A widget is one function that returns a `Widget`, and one module of the folder live/ with its style.
It shows itself without a network, a server or a kernel; where scripts do not run, its picture
stays.
"""

import base64
import hashlib
import html
import io
import json
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from transformer.core.files import write_file

# The picture goes as soon as the frame is there. The frame is as high as its page says it is; it is
# told whether the page around is dark, by the marks of JupyterLab, VS Code and the web site.
FRAME = """
<div><img src="data:image/png;base64,{picture}" alt="{alt}" width="{width}">
<iframe srcdoc="{page}" title="{title}" sandbox="allow-scripts" onload="{onload}" \
style="width: 100%; height: {height}px; border: 0"></iframe></div>""".lstrip("\n")
ONLOAD = (
    "const frame = this; this.previousElementSibling?.remove(); "
    "window.addEventListener('message', event => { if (event.source === frame.contentWindow "
    "&& event.data.height > 0) frame.style.height = event.data.height + 'px'; }); "
    "frame.contentWindow.postMessage(String(document.body.dataset.jpThemeLight ?? "
    "document.body.dataset.vscodeThemeKind ?? document.documentElement.dataset.theme ?? ''), '*')"
)
# The colours of ideas, for pictures; kit.css has the same for pages.
ATTENTION, PALE, RED = "#2f6fb5", "#eaf1f9", "#b5432a"
FEED_FORWARD, POSITIONS = "#e0822f", "#b5446e"
INK, GREY, RULE, TRACK = "#222222", "#6a6a6a", "#c9c9c9", "#f1f1f1"
DOTS = 144  # of a picture an inch, and those of a screen
SCREEN = 96
MARGIN = 8  # dots around a picture


def live(name: str) -> str:
    """The text of a file of live/."""
    return files("transformer.views").joinpath("live", name).read_text(encoding="utf8")


def script(modules: tuple[str, ...]) -> str:
    """Modules of live/ as one script."""
    whole = "\n".join(live(f"{name}.mjs") for name in modules)
    whole = re.sub(r"^import [^;]*;\n", "", whole, flags=re.MULTILINE)
    return re.sub(r"^export ", "", whole, flags=re.MULTILINE)


def embedded(data: Any) -> str:
    """JSON that may stand in a script element: `</script>` in a text would end it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def fill(template: str, style: str, script: str, **parts: str) -> str:
    """A page of live/ with its parts; its policy lets this style and this script run, no other."""
    parts |= {"style": style, "script": script}
    for name in ("style", "script"):
        digest = hashlib.sha256(parts[name].encode()).digest()
        parts[f"hash of {name}"] = f"'sha256-{base64.b64encode(digest).decode()}'"
    return re.sub(r"\{\{(.*?)\}\}", lambda place: parts[place[1]], live(template))


@dataclass(frozen=True)
class Widget:
    """A page that a notebook shows, and that `save` writes to a file.

    height: pixels of its frame until the page says how high it is. alt: its picture in words.
    picture: a PNG of its most telling state. fragment: what the address of the site's page that holds
    the bundled model says after its #, where that page shows the same. In a notebook the page stands in a frame of its own:
    its styles and Jupyter's never meet, and it may run its own script and nothing else.
    """

    page: str = field(repr=False)
    height: int
    title: str = "A page"
    alt: str = field(default="", repr=False)
    picture: bytes = field(default=b"", repr=False)
    fragment: str = field(default="", repr=False)

    def save(self, path):
        """Write the page to an HTML file that any browser opens."""
        write_file(
            path, lambda temporary: temporary.write_text(self.page, encoding="utf8")
        )

    def _repr_html_(self):
        page = self.page.replace("&", "&amp;").replace('"', "&quot;")
        filled = FRAME.format(
            page=page,
            title=html.escape(self.title),
            onload=ONLOAD,
            height=self.height,
            picture=base64.b64encode(self.picture).decode(),
            alt=html.escape(self.alt),
            width=width_of(self.picture) * SCREEN // DOTS,
        )
        return filled if self.picture else re.sub("<img [^>]*>\n", "", filled)

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/html": self._repr_html_(), "text/plain": self.alt or repr(self)}
        if not self.picture:
            return data, {}
        data["image/png"] = base64.b64encode(self.picture).decode()
        address = {"live": self.fragment} if self.fragment else {}
        return data, {"image/png": {"alt": self.alt}, **address}


def brief(text: str) -> str:
    """A script or a style without indents, empty lines and lines that are comments."""
    return re.sub(r"^[ ]*(//.*)?\n|^[ ]+", "", text, flags=re.MULTILINE)


def widget(
    name: str,
    data: dict,
    title: str,
    alt: str,
    figure,
    height: int,
    accent: str = RED,
    with_clocks: bool = False,
) -> Widget:
    """A `Widget` from the module, the style and the drawing function of a name.

    data is what the module's start function gets; figure a matplotlib figure with the same numbers.
    accent: one more colour of its picture. with_clocks: the module uses live/clockwork.
    """
    start = "".join(word.title() for word in name.split("_"))
    parts = ("clockwork", name) if with_clocks else (name,)
    style = "".join(live(f"{part}.css") for part in ("kit", *parts))
    page = fill(
        "kit.html",
        brief(style),
        f"{brief(script(('kit', 'numbers', *parts)))}\nstart{start}"
        '(JSON.parse(document.getElementById("data").textContent));\n',
        title=html.escape(title),
        alt=html.escape(alt),
        data=embedded(data),
    )
    return Widget(page, height, title, alt, png(figure, accent))


# Pictures


def width_of(picture: bytes) -> int:
    """The width in pixels that a PNG says it has; 0 for no picture."""
    return int.from_bytes(picture[16:20], "big")


def palette(accent: str):
    """An image of the 16 colours of pictures: those below, with steps on their way to white."""
    from PIL import Image

    steps = {
        INK: (1, 0.7, 0.35),
        GREY: (1, 0.5),
        ATTENTION: (1, 0.66, 0.33),
        accent: (1, 0.5),
    }
    steps |= {PALE: (1,), TRACK: (1,), RULE: (1,)}
    numbers = [255, 255, 255] * 3  # white, and two places to spare
    for colour, shares in steps.items():
        channels = bytes.fromhex(colour[1:])
        numbers += [round(255 - s * (255 - c)) for s in shares for c in channels]
    image = Image.new("P", (1, 1))
    image.putpalette(numbers)
    return image


def png(figure, accent: str = RED) -> bytes:
    """A matplotlib figure as a small PNG: 16 colours, a narrow margin, and no date in it."""
    from PIL import Image, ImageOps

    drawn, small = io.BytesIO(), io.BytesIO()
    with plain_style():
        figure.savefig(drawn, dpi=DOTS, facecolor="white")
    image = Image.open(drawn).convert("RGB")
    image = image.crop(ImageOps.invert(image).getbbox())
    image = ImageOps.expand(image, MARGIN, "white")
    image = image.quantize(palette=palette(accent), dither=Image.Dither.NONE)
    image.save(small, "PNG", optimize=True, bits=4)
    return small.getvalue()


@contextmanager
def plain_style():
    """A context in which matplotlib draws as for a printed book; texts are no formulae."""
    import matplotlib

    from transformer.views.style import SETTINGS, add_fonts

    add_fonts()
    shared = ("font.family", "mathtext.fontset", "mathtext.rm", "mathtext.it")
    settings = {name: SETTINGS[name] for name in shared} | {
        "text.parse_math": False,
        "mathtext.cal": SETTINGS["mathtext.rm"],
        "font.size": 10.5,
        "text.color": INK,
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.7,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # words may be any
        yield
