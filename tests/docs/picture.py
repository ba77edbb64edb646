"""Make the picture of the README: ``python -m tests.docs.picture docs/images/report.png``.

A plan of the example fleet, its report, and what Chromium shows of that page.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from kassign_spark import cli

_WIDTH, _HEIGHT = 1280, 1330


def make(picture: Path) -> None:
    """Write the picture, as PNG.

    Raises:
        RuntimeError: a command failed, or there is no Chromium.
    """
    with tempfile.TemporaryDirectory() as folder:
        plan, page = Path(folder) / "plan", Path(folder) / "report.html"
        for command in (
            ["assign", "examples/fleet", "--output", str(plan)],
            ["report", str(plan), "--snapshot", "examples/fleet", "--output", str(page)],
        ):
            if cli.main(command) != 0:
                raise RuntimeError(f"kassign-spark {command[0]} failed")
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(folder, "build"), encoding="utf-8")
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(_shown(page))


def _shown(page: Path) -> bytes:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise RuntimeError("chromium and chromedriver are needed: make browser installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(f"--window-size={_WIDTH},{_HEIGHT}", "--hide-scrollbars"),
    ):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        browser.get(page.as_uri())
        return browser.get_screenshot_as_png()
    finally:
        browser.quit()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
