"""Takes pictures of the channel for the README: `make slack-picture`.

A small account with the stack is swept, and a headless Chromium takes the page of its channel in both themes, as wide
as a phone. Needs matplotlib (the extra pictures) and chromium; says so where one is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rightsizer.render.pictures import figure_class
from sandbox.slack_page import page
from tests.doors.scene import BIG, PROPOSE, scene

PHONE = "390,700"
THEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0", "--force-dark-mode")}
OWNER = "ada@example.com"


def channel() -> str:
    """The page of a channel with one proposal that waits, its picture and its details."""
    with scene() as at:
        at.slack.members_by_email[OWNER] = "U0ADA12345"
        at.add(BIG, tags={**PROPOSE, "rightsizer:owner": OWNER})
        at.sweep()
        at.pass_time(minutes=2)
        return page(at.slack.messages, at.slack.files).replace("@U0ADA12345", "@Ada")


def shoot(browser: str, whole: str, folder: Path) -> list[Path]:
    """One PNG of each theme."""
    made = []
    with TemporaryDirectory() as kept:
        source = Path(kept) / "slack.html"
        source.write_text(whole)
        for theme, switches in THEMES.items():
            file = folder / f"slack-{theme}.png"
            common = ("--headless", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=2")
            command = [browser, *common, *switches, f"--window-size={PHONE}", f"--screenshot={file}", source.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            made.append(file)
    return made


def main() -> None:
    """Write the pictures into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("slack_shot: there is no chromium on PATH; install it to take the pictures")
    figure_class()
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL")
    for file in shoot(browser, channel(), given.folder):
        print(file)


if __name__ == "__main__":
    main()
