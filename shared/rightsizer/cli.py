"""The same flows for a person at a terminal."""


def main() -> None:
    """Run the command line."""
