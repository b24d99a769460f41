"""Ids: random, never twice, whichever thread or process makes them."""

import os
import threading

from reef.ids import is_id, new_id, spans


def test_ids_are_thirty_two_hex_digits_and_never_the_same():
    made = [new_id() for _ in range(2_000)]
    assert all(is_id(one) for one in made)
    assert len(set(made)) == len(made)


def test_threads_do_not_make_the_same_ids():
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(1_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8_000
    assert len(set(made)) == len(made)


def test_a_forked_child_does_not_make_its_parents_next_id():
    new_id()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 64).decode() != new_id()


def test_numbers_are_told_in_few_words() -> None:
    assert spans("v", [3, 1, 2, 10, 2]) == "v1 to v3, v10"
    assert spans("s", [7]) == "s7"
    assert spans("v", []) == ""
    assert spans("v", range(1, 100, 2)).startswith("…, v77, ")
