"""Headless Chromium for the tests of pages, by Playwright, with or without WebGL (rendered by software)."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
WITHOUT = ("--disable-gpu", "--disable-3d-apis")
DESKTOP, PHONE = (1280, 720), (390, 844)


def require_browser() -> str:
    """The path of Chromium; skips the test, with the reason, where it or Playwright is missing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed (Debian's package chromium): pages are not drawn")
    pytest.importorskip("playwright", reason="playwright is not installed: pages are not drawn")
    return path


@contextmanager
def browsers() -> Iterator[Callable[..., Any]]:
    """A function that starts a browser with an empty profile and the given flags."""
    path = require_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started: list[Any] = []

        def start(*flags: str) -> Any:
            started.append(playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *flags]))
            return started[-1]

        try:
            yield start
        finally:
            for chromium in started:
                chromium.close()


class Page:
    """A page that was opened from a file without a network; ``problems`` are the errors in its console."""

    def __init__(self, chromium: Any, path: Path, size: tuple[int, int] = DESKTOP) -> None:
        self.context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, offline=True)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def ready(self) -> float:
        """Wait until the motion is drawn; seconds from the start of loading."""
        self.page.wait_for_selector("body[data-state]", timeout=20_000)
        self.page.evaluate("new Promise(requestAnimationFrame)")
        assert self.page.evaluate("document.body.dataset.state") == "ready", self.problems
        return float(self.page.evaluate("performance.now()")) / 1e3

    def run(self, script: str) -> Any:
        """The value of JavaScript in the page."""
        return self.page.evaluate(script)

    def seek(self, fraction: float) -> None:
        """Show the motion at a fraction of its duration."""
        self.run(f"animation.seek(animation.start + {fraction} * animation.duration)")

    def colored(self, color: str, margin: float = 0.12) -> np.ndarray:
        """Positions (n, 2), x and y in pixels, of what has the hue of ``color``, whatever its brightness."""
        from matplotlib import colors
        from matplotlib.image import imread

        shot = imread(io.BytesIO(self.page.screenshot(clip=self.page.locator("#view").bounding_box())))
        hue, saturation, _ = np.moveaxis(colors.rgb_to_hsv(shot[..., :3]), -1, 0)
        wanted = colors.rgb_to_hsv(colors.to_rgb(color))[0]
        distance = np.abs((hue - wanted + 0.5) % 1.0 - 0.5)
        y, x = np.nonzero((distance < margin / 2) & (saturation > 0.4))
        return np.stack([x, y], axis=-1)

    def close(self) -> None:
        self.context.close()
