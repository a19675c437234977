"""The commands of ``rightsizer``: typer and rich over the same flows that the deployed functions run."""
