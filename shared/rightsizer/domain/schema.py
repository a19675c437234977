"""The number of stored documents: which of them this release may act on. No pydantic: `respond` uses it too."""

SCHEMA = 1
"""The number of the documents that this release writes, and the highest that it reads. One without a number is 1.

A new field with a default needs no new number. Raise it only where an older release must not act on the document.
"""


def newer_than_known(document: object) -> str:
    """Why this release must not act on a stored document; empty when it may."""
    number = document.get("schema", SCHEMA) if isinstance(document, dict) else SCHEMA
    if isinstance(number, int) and number <= SCHEMA:
        return ""
    return (
        f"its schema number is {number!s:.20} and this release knows numbers up to {SCHEMA}; deploy the release that "
        "wrote it, or a later one"
    )
