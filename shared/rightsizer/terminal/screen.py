"""The screen of a terminal: what is printed is cleaned, so that no name or error message steers the terminal."""

from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment

from rightsizer.domain.reason import cleaned


class Screen(Console):
    """A console of rich whose text holds no control characters but those of rich's own styles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_Cleaning())


class _Cleaning(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Cleaned(one) for one in renderables]


class _Cleaned:
    """Renders as what it holds, with the text of each segment cleaned; styles are added after that."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self._inner, options):
            yield part if part.control else Segment(cleaned(part.text, len(part.text)), part.style)
