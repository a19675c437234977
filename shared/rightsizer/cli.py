"""The same flows for a person at a terminal."""

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit; see docs/cli.md for the exit codes."""
    try:
        import typer  # noqa: F401
        from rich import console  # noqa: F401
    except ImportError as error:
        print(
            f"rightsizer: {error.name} is not installed; the command line needs it: pip install typer rich",
            file=sys.stderr,
        )
        sys.exit(1)
    from rightsizer.terminal.run import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
