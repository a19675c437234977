"""``python -m rightsizer``."""

from rightsizer.cli import main

main()
