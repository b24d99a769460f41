"""A page of text in blocks: wrapped to its width, scrolled, folded and unfolded at the cursor line.

While the same page is shown again with new content, cursor and folds stay; a reader at the end stays at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.strip import Strip

from reef.tui import cells
from reef.tui.lines import Block, Line, Span
from reef.tui.widgets.painted import Painted

LEFT = 1
MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class _Painted:
    spans: tuple[Span, ...]
    block: int


class Document(Painted, can_focus=True):
    """Blocks of lines, one line under the cursor."""

    DEFAULT_CSS = "Document { height: 1fr; width: 1fr; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page = ""
        self.blocks: Sequence[Block] = ()
        self.cursor = 0
        self.top = 0
        self._lines: list[_Painted] = []
        self._laid_out = -1
        self._folds: dict[str, bool] = {}

    def show(self, page: str, blocks: Sequence[Block]) -> None:
        """Show blocks; `page` names what they are about."""
        at_end = self.page == page and bool(self._lines) and self.cursor == len(self._lines) - 1 > self.size.height
        if page != self.page:
            self.cursor = self.top = 0
            self._folds = {}
        self.page = page
        self.blocks = blocks
        self._laid_out = -1
        self._lay_out()
        if at_end:
            self.cursor = len(self._lines) - 1
        self._settle()

    def tick(self) -> None:
        """Time went by: paint blocks that tell relative times anew if these have changed."""
        changed = [block for block in self.blocks if block.tick()]
        if changed:
            self._laid_out = -1
            self._lay_out()
            self._settle()

    @property
    def current(self) -> Block | None:
        """The block under the cursor."""
        return self.blocks[self._lines[self.cursor].block] if self._lines and self.blocks else None

    def folded(self, block: Block) -> bool:
        """Whether a block is folded now."""
        return block.folded is not None and self._folds.get(block.key, block.folded)

    def toggle(self) -> bool:
        """Fold or unfold the block under the cursor; False when it cannot be."""
        block = self.current
        if block is None or block.folded is None:
            return False
        self._folds[block.key] = not self.folded(block)
        self._laid_out = -1
        self._lay_out()
        head = next((n for n, line in enumerate(self._lines) if self.blocks[line.block] is block), self.cursor)
        self.cursor = head
        self._settle()
        return True

    # moves

    def move(self, lines: int) -> None:
        """Move the cursor line; the viewport follows."""
        self.cursor += lines
        self._settle()

    def turn(self, direction: int) -> None:
        """Move by a page."""
        self.move(direction * max(self.size.height - 2, 1))

    def to_top(self) -> None:
        self.move(-len(self._lines))

    def to_bottom(self) -> None:
        self.move(len(self._lines))

    def _settle(self) -> None:
        height = max(self.size.height, 1)
        self.cursor = max(0, min(self.cursor, len(self._lines) - 1))
        self.top = max(0, min(self.top, len(self._lines) - height))
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        block = self.current
        self._lay_out()
        if block is not None:
            at = next((n for n, line in enumerate(self._lines) if self.blocks[line.block] is block), self.cursor)
            if not (self.cursor < len(self._lines) and self.blocks[self._lines[self.cursor].block] is block):
                self.cursor = at
        self._settle()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def _scroll(self, lines: int) -> None:
        height = max(self.size.height, 1)
        self.top = max(0, min(self.top + lines, len(self._lines) - height))
        self.cursor = max(self.top, min(self.cursor, self.top + height - 1))
        self._settle()

    def on_click(self, event: events.Click) -> None:
        at = self.top + event.y
        if at < len(self._lines):
            self.cursor = at
            self._settle()
            block = self._lines[at].block
            if at == 0 or self._lines[at - 1].block != block or self.folded(self.blocks[block]):
                self.toggle()

    # layout and painting

    def _lay_out(self) -> None:
        columns = self.size.width - LEFT - 1
        if columns == self._laid_out:
            return
        self._laid_out = columns
        self._lines = []
        if columns <= 0:
            return
        hidden: set[str] = set()
        for number, block in enumerate(self.blocks):
            if block.inside is not None and block.inside in hidden:
                hidden.add(block.key)
                continue
            folded = self.folded(block)
            if folded:
                hidden.add(block.key)
            if block.head is not None:
                self._add_head(number, block, folded, columns)
            for line in () if folded else block.lines():
                if len(self._lines) >= MOST_LINES:
                    self._add(number, Line.of(("… the rest is not painted; the export has all of it", "dim")), columns)
                    return
                self._add(number, line, columns)

    def _add_head(self, number: int, block: Block, folded: bool, columns: int) -> None:
        """A head line; one that can be folded is cut instead of wrapped, so that a folded block stays short."""
        assert block.head is not None
        if block.folded is None:
            self._add(number, block.head, columns)
            return
        self._lines.append(_Painted(cut_spans(_marked(block.head, "▸ " if folded else "▾ "), columns), number))
        if folded and block.brief is not None:
            self._lines.append(_Painted(cut_spans(block.brief, columns), number))

    def _add(self, block: int, line: Line, columns: int) -> None:
        self._lines += [_Painted(spans, block) for spans in wrapped(line, columns)]

    def lines_at(self, columns: int) -> int:
        """How many lines the page takes at a width, folded as it is now."""
        count = 0
        for block in self.blocks:
            folded = self.folded(block)
            lines = [] if block.head is None else [block.head]
            lines += [block.brief] if folded and block.brief is not None else [] if folded else list(block.lines())
            count += sum(len(wrapped(line, max(columns, 1))) for line in lines)
        return count

    def render_line(self, y: int) -> Strip:
        columns = self.size.width
        at = self.top + y
        if columns <= 0 or at >= len(self._lines):
            return self.strip_of((), max(columns, 0))
        under_cursor = at == self.cursor and self.has_focus
        spans: list[Span] = [(" " * LEFT, ""), *self._lines[at].spans]
        strip = self.strip_of(spans, columns - 1, under_cursor)
        return Strip.join([strip, self.strip_of([(self._thumb(y), "rule")], 1)])

    def _thumb(self, y: int) -> str:
        total, height = len(self._lines), self.size.height
        if total <= height:
            return " "
        length = max(1, height * height // total)
        start = self.top * (height - length) // max(total - height, 1)
        return "▐" if start <= y < start + length else " "


def _marked(line: Line, mark: str) -> Line:
    """`line` with the fold mark after its indentation."""
    if not mark or not line.spans:
        return line
    text, role = line.spans[0]
    bare = text.lstrip(" ")
    lead = text[: len(text) - len(bare)]
    return Line(((lead, ""), (mark, "dim"), (bare, role), *line.spans[1:]), line.hang + 2)


def cut_spans(line: Line, columns: int) -> tuple[Span, ...]:
    """A line cut to `columns` columns, roles kept."""
    kept: list[Span] = []
    left = columns
    for place, (text, role) in enumerate(line.spans):
        size = cells.width(text)
        if size > left or (size == left and any(more.strip() for more, _ in line.spans[place + 1 :])):
            kept.append((cells.cut(text + " ", left), role))
            break
        kept.append((text, role))
        left -= size
    return tuple(kept)


def wrapped(line: Line, columns: int) -> list[tuple[Span, ...]]:
    """A line as painted lines of at most `columns` columns, roles kept."""
    text = line.text
    if cells.width(text) <= columns:
        return [line.spans]
    if len(line.spans) == 1 and not line.hang:
        role = line.spans[0][1]
        return [((piece, role),) for piece in cells.wrap(text, columns)]
    return _wrap_spans(line, columns)


def _wrap_spans(line: Line, columns: int) -> list[tuple[Span, ...]]:
    """Wrap a line of several roles at word or cluster ends; later lines stand at the line's hang."""
    lead: tuple[Span, ...] = ((" " * line.hang, ""),) if 0 < line.hang <= columns // 2 else ()
    indent = line.hang if lead else 0
    lines: list[tuple[Span, ...]] = []
    held: list[Span] = []
    used = 0
    for text, role in line.spans:
        for word in cells.words(text):
            size = cells.width(word)
            if used + size > columns and used > indent:
                if word.isspace():
                    continue
                lines.append(tuple(held))
                held, used = list(lead), indent
            for piece, piece_size in cells.pieces(word, max(columns - indent, 1)):
                if used + piece_size > columns and used > indent:
                    lines.append(tuple(held))
                    held, used = list(lead), indent
                held.append((piece, role))
                used += piece_size
    if held:
        lines.append(tuple(held))
    return lines
