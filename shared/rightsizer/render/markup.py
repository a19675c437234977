"""HTML and SVG as strings in which everything is escaped unless it was built here.

Decision record 0010 says why there is no template engine: it would double the layer for two pages.
"""

from html import escape

from rightsizer.domain.reason import cleaned, one_line

LONGEST = 100_000
"""Characters of one text on a page: a diff of a template fits, and so do the points of a course."""


class Markup(str):
    """Text that is markup already. Only `tag` and `join` make it."""

    __slots__ = ()


type Node = Markup | str | int | float | None

VOID = frozenset({"meta", "br", "line", "rect", "path", "polyline", "circle"})


def tag(element: str, /, *children: Node, **attributes: str | int | float | bool | None) -> Markup:
    """An element. Plain text is escaped, None is left out; ``class_`` is class, and ``aria_label`` is aria-label."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if element in VOID and not children:
        return Markup(f"<{element}{given}>" if element in {"meta", "br"} else f"<{element}{given}/>")
    return Markup(f"<{element}{given}>{join(*children)}</{element}>")


def join(*children: Node) -> Markup:
    """Nodes one after the other."""
    return Markup("".join(_node(child) for child in children))


def raw(constant: str) -> Markup:
    """A constant of this package as it is: style sheet and script. Never anything that came from outside."""
    return Markup(constant)


def _node(child: Node) -> str:
    if child is None:
        return ""
    return str(child) if isinstance(child, Markup) else escape(cleaned(str(child), LONGEST))


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-") if key not in {"viewBox", "preserveAspectRatio"} else key
    return f" {name}" if value is True else f' {name}="{escape(one_line(str(value), LONGEST))}"'
