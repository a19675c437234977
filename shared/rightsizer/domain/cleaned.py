"""What others wrote, made fit to be shown: names, tags, comments, alarm names, error messages of AWS.

Every channel calls these functions where the text leaves the program, and then escapes in its own way. A character
that is not printable (control characters with ESC, bidirectional controls, zero-width characters, lone surrogates)
could change what a person reads around it, so it is replaced where it stands. Nothing that a person can see is lost.
"""

MARK = "\N{REPLACEMENT CHARACTER}"
"""Stands where a character was that must not be shown."""
LONGEST = 3000
"""Characters of one text in a message. Names have at most 256, reasons of AWS at most 1024."""


def cleaned(text: str, most: int = LONGEST) -> str:
    """The text without characters that are not printable; lines stay lines. At most `most` characters."""
    return "\n".join(_printable(line) for line in shortened(text, most).split("\n"))


def one_line(text: str, most: int = LONGEST) -> str:
    """The same as one line: a line break becomes a space, so that no text adds a line to a message."""
    return _printable(shortened(text, most))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else MARK for letter in text)
