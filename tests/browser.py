"""A headless Chromium for tests: one page, led through a pipe, without any package."""

import json
import os
import select
import shutil
import subprocess
import sys
from contextlib import contextmanager

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)


class Browser:
    """One page of a headless Chromium, led by DevTools commands through a pipe; `complaints`: what it complained of."""

    KEYS = {
        "Tab": 9,
        "Enter": 13,
        "Escape": 27,
        "End": 35,
        "Home": 36,
        "ArrowLeft": 37,
        "ArrowUp": 38,
        "ArrowRight": 39,
        "ArrowDown": 40,
    }
    VISIBLE = (
        "[...document.querySelector('.side').children].filter(b => getComputedStyle(b).visibility === 'visible')"
        ".map(b => b.firstChild.textContent)"
    )
    # Chromium reads commands on descriptor 3 and answers on 4
    START = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
        "os.execv(sys.argv[3], sys.argv[3:])"
    )

    def __init__(self, folder):
        reading, self.commands = os.pipe()
        self.answers, writing = os.pipe()
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "--no-first-run",
            "--disable-background-networking",
        ]
        command = [
            sys.executable,
            "-c",
            self.START,
            str(reading),
            str(writing),
            CHROMIUM,
            *options,
        ]
        self.process = subprocess.Popen(
            command, pass_fds=(reading, writing), stderr=subprocess.DEVNULL
        )
        os.close(reading), os.close(writing)
        (
            self.number,
            self.buffer,
            self.session,
            self.complaints,
            self.addresses,
            self.frames,
        ) = 0, b"", None, [], [], {}
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Target.setAutoAttach",
            autoAttach=True,
            waitForDebuggerOnStart=False,
            flatten=True,
        )

    def message(self):
        while b"\0" not in self.buffer:
            assert select.select([self.answers], [], [], 120)[0], (
                "Chromium does not answer"
            )
            part = os.read(self.answers, 1 << 20)
            assert part, "Chromium has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def send(self, method, **parameters):
        """A command's result; events that come before it are noted."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        command |= {"sessionId": self.session} if self.session else {}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def note(self, event):
        if event["method"] in (
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
        ):
            self.complaints.append(event["params"])
        if event["method"] == "Network.requestWillBeSent":
            self.addresses.append(event["params"]["request"]["url"])
        if event["method"] == "Target.attachedToTarget":
            self.frames[event["params"]["targetInfo"]["targetId"]] = event["params"][
                "sessionId"
            ]

    def open(self, place):
        """Open a file, or an address."""
        self.send(
            "Page.navigate", url=place if isinstance(place, str) else place.as_uri()
        )
        while self.run("document.readyState") != "complete":
            pass

    @contextmanager
    def frame(self, selector):
        """Inside the block, commands go to a sandboxed frame of the page, which has a process of its own."""
        page = self.session
        # by the element itself: a number of a node is lost when the frame's content changes
        element = self.send(
            "Runtime.evaluate", expression=f"document.querySelector({selector!r})"
        )["result"]["objectId"]
        frame = self.send("DOM.describeNode", objectId=element)["node"]["frameId"]
        while frame not in self.frames:
            self.run("new Promise(done => setTimeout(done, 50))")
        self.session = self.frames[frame]
        try:
            for domain in ("Runtime", "Log"):
                self.send(f"{domain}.enable")
            while self.run("document.readyState") != "complete":
                pass
            yield
        finally:
            self.session = page

    def run(self, expression):
        """The value of a JavaScript expression in the page."""
        result = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, *keys):
        for key in keys:
            code = {"key": key, "code": key, "windowsVirtualKeyCode": self.KEYS[key]}
            self.send(
                "Input.dispatchKeyEvent",
                type="keyDown",
                **code,
                **({"text": "\r"} if key == "Enter" else {}),
            )
            self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    def select(self, name, value):
        self.run(
            f"{{const list = document.getElementById('{name}'); list.value = {json.dumps(value)}; "
            "list.dispatchEvent(new Event('change'))}"
        )

    def words(self):
        """The words on the left that can be seen, of the first sentence."""
        return self.run(self.VISIBLE.replace(".side", ".rows"))

    def read(self):
        """The words on the right that can be seen."""
        return self.run(self.VISIBLE.replace(".side", ".columns"))

    def numbers(self):
        return self.run(
            "[...document.querySelector('.columns').children].map(b => b.lastChild.textContent)"
        )

    def close(self):
        self.send("Browser.close")
        self.process.wait(timeout=30)
        os.close(self.commands), os.close(self.answers)
