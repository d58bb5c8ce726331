"""Draw the live page's picture, data/live.png, with Chromium: python tools/picture.py"""

import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pairs

from transformer import load, view


def main():
    """The page that holds the model, as Chromium shows it: head 1.3 is made to look at the dog."""
    sys.path.insert(0, str(pairs.ROOT / "tests"))
    from browser import Browser

    sentence = "The old cat that saw the dog lost its ball."
    click = (
        "[...document.querySelectorAll('.{} button')]"
        ".find(b => b.firstChild.textContent === '{}').click()"
    )
    with TemporaryDirectory() as folder:
        view(*load(), sentence).save(Path(folder, "live.html"))
        browser = Browser(Path(folder, "profile"))
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=760,
            height=1000,
            deviceScaleFactor=1.25,
            mobile=False,
        )
        browser.send("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(Path(folder, "live.html"))
        for name, value in (("kind", "encoder"), ("layer", 0), ("head", 2)):
            browser.select(name, value)
        browser.run(click.format("rows", "its"))
        browser.run(click.format("columns", "dog"))
        browser.run("document.querySelector('[data-is=force]').click()")
        picture = browser.send("Page.captureScreenshot", captureBeyondViewport=True)[
            "data"
        ]
        browser.close()
    (pairs.ROOT / "data" / "live.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
