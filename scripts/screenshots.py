"""Pictures of the demo's report for README.md: `python -m scripts.screenshots`, after `make demo`.

Chromium draws the first screens of the page, light on a desktop and dark on a phone, into `docs/pictures/`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
FRAME = (
    """<!doctype html><style>body{margin:0}iframe{border:0;width:%dpx;height:%dpx}</style><iframe src="%s"></iframe>"""
)
"""The page in a frame: the window of a headless browser is never below 500 px."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its file, its size in pixels, and whether the page is dark."""

    file: str
    width: int
    height: int
    dark: bool


SHOTS = (Shot("report-desktop.png", 1280, 1290, dark=False), Shot("report-phone.png", 390, 1130, dark=True))


def take(browser: str, page: Path, shot: Shot, folder: Path) -> Path:
    """Draw one picture into the folder; its path."""
    made = folder / shot.file
    with tempfile.TemporaryDirectory() as scratch:
        frame = Path(scratch) / "frame.html"
        frame.write_text(FRAME % (shot.width, shot.height, page.resolve().as_uri()))
        raw = Path(scratch) / "raw.png"
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={scratch}/profile",
            f"--blink-settings=preferredColorScheme={0 if shot.dark else 1}",
            f"--window-size={shot.width},{shot.height}",
            f"--screenshot={raw}",
            frame.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        made.write_bytes(raw.read_bytes())
    return made


def main() -> int:
    """Take every picture; the exit code says whether there was a page and a browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="the page; else the newest report in out/demo")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures")
    given = parser.parse_args()
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    if browser is None:
        sys.stderr.write(f"no browser: one of {', '.join(NAMES)} must be on the path\n")
        return 1
    pages = sorted((ROOT / "out" / "demo").glob("*_*.html"))
    page = given.page or (pages[-1] if pages else None)
    if page is None or not page.exists():
        sys.stderr.write("no report to draw: run make demo first, or name a page with --page\n")
        return 1
    for shot in SHOTS:
        print(take(browser, page, shot, given.into))
    return 0


if __name__ == "__main__":
    sys.exit(main())
