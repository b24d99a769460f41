"""Many waits of one length under one timer."""

from __future__ import annotations

import asyncio

from reef.gateway.waits import Waits


async def test_a_wait_ends_when_its_time_is_over_and_the_ones_behind_it_at_theirs():
    waits, woken = Waits(0.05), []
    loop = asyncio.get_running_loop()
    started = loop.time()
    waits.begin(lambda: woken.append(("first", loop.time() - started)))
    await asyncio.sleep(0.03)
    waits.begin(lambda: woken.append(("second", loop.time() - started)))
    await asyncio.sleep(0.2)
    assert [name for name, _ in woken] == ["first", "second"]
    assert woken[0][1] >= 0.049 and woken[1][1] >= 0.079


async def test_a_wait_that_was_ended_wakes_nobody():
    waits, woken = Waits(0.02), []
    ended = waits.begin(lambda: woken.append("ended"))
    waits.begin(lambda: woken.append("other"))
    ended.end()
    await asyncio.sleep(0.1)
    assert woken == ["other"]


async def test_a_wait_may_begin_while_another_is_woken():
    waits, woken = Waits(0.02), []
    waits.begin(lambda: waits.begin(lambda: woken.append("again")))
    await asyncio.sleep(0.15)
    assert woken == ["again"]


async def test_a_future_is_waited_for_and_left_alone():
    waits = Waits(0.03)
    future = asyncio.get_running_loop().create_future()
    assert not await waits.done(future)
    assert not future.done()
    asyncio.get_running_loop().call_later(0.01, future.set_result, 1)
    assert await waits.done(future)
    assert await waits.done(future)


async def test_who_stops_waiting_stops_nobody_else():
    waits = Waits(5)
    future = asyncio.get_running_loop().create_future()
    leaving, staying = (asyncio.create_task(waits.done(future)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    assert leaving.cancelled() and not future.done()
    future.set_result(None)
    assert await staying
