"""The window of rows: one stretch of a long list, the cursor on the same row whatever arrives."""

from __future__ import annotations

from reef.tui.lines import Row
from reef.tui.widgets.window import KEPT, PAGE, Wanted, Window


def rows(newest: int, count: int) -> list[Row]:
    return [Row(f"r{order}", order, {}) for order in range(newest, max(newest - count, 0), -1)]


class Store:
    """Rows 1 to `newest`, read by page as the daemon does."""

    def __init__(self, newest: int) -> None:
        self.newest = newest

    def answer(self, window: Window, wanted: Wanted) -> None:
        if wanted.kind in ("older", "visible"):
            found = rows(wanted.edge - 1, wanted.limit)
        elif wanted.kind in ("newer", "oldest"):
            found = rows(min(wanted.edge + wanted.limit, self.newest), min(wanted.limit, self.newest - wanted.edge))
        else:
            found = rows(self.newest, wanted.limit)
        window.receive(wanted, found, self.newest, len(found) >= wanted.limit)


def opened(store: Store, height: int = 20) -> Window:
    window = Window()
    window.height = height
    store.answer(window, window.news())
    return window


def current(window: Window) -> str:
    assert window.current is not None
    return window.current.key


def test_one_page_is_held_of_a_hundred_thousand_rows() -> None:
    window = opened(Store(100_000))
    assert len(window.rows) == PAGE
    assert window.total == 100_000
    assert current(window) == "r100000"


def test_scrolling_through_everything_holds_a_bounded_window() -> None:
    store = Store(5_000)
    window = opened(store)
    for _ in range(400):
        window.move(19)
        while (wanted := window.wanted()) is not None:
            store.answer(window, wanted)
        assert len(window.rows) <= KEPT + PAGE
    assert current(window) == "r1"
    assert window.above == 5_000 - len(window.rows)
    for _ in range(400):
        window.move(-19)
        while (wanted := window.wanted()) is not None:
            store.answer(window, wanted)
        assert len(window.rows) <= KEPT + PAGE
    assert current(window) == "r5000"
    assert window.above == 0


def test_the_cursor_stays_on_its_row_when_rows_arrive() -> None:
    store = Store(300)
    window = opened(store)
    window.move(7)
    assert current(window) == "r293"
    for _ in range(50):
        store.newest += 1
        store.answer(window, window.news())
        assert current(window) == "r293"
        assert window.top <= window.cursor < window.top + window.height


def test_new_rows_show_at_the_top_while_the_cursor_is_in_view() -> None:
    store = Store(300)
    window = opened(store)
    store.newest += 3
    store.answer(window, window.news())
    assert window.rows[window.top].key == "r303"
    assert current(window) == "r300"


def test_rows_that_arrive_far_above_are_counted_not_loaded() -> None:
    store = Store(3_000)
    window = opened(store)
    window.move(150)
    row, held = current(window), len(window.rows)
    store.newest += 40
    store.answer(window, window.news())
    assert current(window) == row
    assert window.above == 40
    assert len(window.rows) == held


def test_a_burst_of_more_than_a_page_does_not_lose_the_row_under_the_cursor() -> None:
    store = Store(300)
    window = opened(store)
    window.move(5)
    store.newest += 5_000
    store.answer(window, window.news())
    assert current(window) == "r295"
    assert window.above == 5_000
    store.answer(window, Wanted("newest", jump=True))
    assert current(window) == "r5300"


def test_the_oldest_row_is_one_page_away() -> None:
    store = Store(100_000)
    window = opened(store)
    store.answer(window, Wanted("oldest"))
    assert current(window) == "r1"
    assert window.above == 100_000 - PAGE
    assert window.wanted() is None


def test_changed_rows_are_replaced_in_place() -> None:
    window = opened(Store(10))
    changed = [Row(row.key, row.order, {"score": 1}) if row.order == 4 else row for row in window.rows]
    window.receive(window.news(), changed, 10, False)
    assert [row.data for row in window.rows if row.order == 4] == [{"score": 1}]
    assert len(window.rows) == 10


def test_a_row_that_is_gone_leaves_the_cursor_in_the_list() -> None:
    window = opened(Store(10))
    window.move(9)
    window.replace(window.rows[:3], 3, newest=True, oldest=True)
    assert window.current is not None


def test_an_empty_list_has_no_current_row() -> None:
    window = opened(Store(0))
    assert window.current is None
    window.move(3)
    window.scroll(5)
    assert window.current is None
