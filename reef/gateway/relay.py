"""The relay: one call in, one call out, the bytes of both unchanged, and a record of what went by.

The order of one call: a receipt is made, the row is queued for the disk and the upstream is called at the same time;
the reply's first byte leaves when the row is on disk (or without a receipt when that takes too long); the reply ends
when its end is on disk too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import aiohttp
from aiohttp import web

from reef.config import Settings
from reef.engines.dialects import ABSENT
from reef.engines.engine import CHAT, Engine
from reef.errors import InvalidInput, ReefError, TooLarge
from reef.gateway import encodings, headers, window
from reef.gateway.again import BrokenOff, Tries
from reef.gateway.bodies import received
from reef.gateway.call import Call
from reef.gateway.delivery import ClientGone, Delivery
from reef.gateway.dialect import Dialect, Problem, RequestFacts, problem_of, session_from
from reef.gateway.dialects import CHAT_DIALECT
from reef.gateway.model_lists import list_models
from reef.gateway.prompt_cut import PromptCheck, Windows
from reef.gateway.recording import Patience, Recording
from reef.gateway.refusing import refusal
from reef.gateway.requests import with_model
from reef.gateway.running import Running, RunningCalls
from reef.gateway.sending import as_it_came, translated_request
from reef.gateway.side_calls import is_side_call
from reef.gateway.streamed import deliver_stream
from reef.gateway.streaming import StreamCopy
from reef.gateway.translate import Exchange
from reef.gateway.translated import deliver_translated
from reef.gateway.unrecorded import pass_through
from reef.gateway.upstream import UpstreamCalls
from reef.gateway.whole import deliver_estimate, deliver_folded, deliver_whole, is_event_stream
from reef.gateway.wire import Reply
from reef.ids import new_id
from reef.records.calls import LARGE, OpenRecord
from reef.records.writer import Writer

log = logging.getLogger("reef.gateway")

ENGINE_WAIT_S = 60.0
"""How long a call waits for an engine that is still starting."""

_STOPPING = Problem(503, "reef is stopping", code="stopping")
P = ParamSpec("P")
T = TypeVar("T")


class Gateway:
    """Answers model calls. One per daemon; made and used on its event loop."""

    def __init__(self, writer: Writer, settings: Settings) -> None:
        self._writer = writer
        self._settings = settings
        self._upstream = UpstreamCalls(settings.inference.connect_timeout_s, settings.inference.timeout_s)
        self._calls = RunningCalls()
        self._windows = Windows()
        self._patience = Patience()
        self.unrecorded = 0
        """Replies that went out without a receipt."""
        self.lost = 0
        """Calls whose record is not in the store, or not whole."""

    @property
    def running(self) -> int:
        """How many calls are being answered now."""
        return len(self._calls)

    async def relay(
        self, request: web.Request, call: Call, engine: Engine, dialect: Dialect = CHAT_DIALECT
    ) -> web.StreamResponse:
        """Answer one model call. Never raises for what goes wrong with it: errors have the dialect's own shape.

        The request's body may be unread. Ends early only by cancellation, when the client has gone.
        """
        if self._calls.draining:
            return refusal(dialect, _STOPPING)
        started = time.monotonic()
        try:
            body = await received(request.content, request.client_max_size)
        except (TooLarge, InvalidInput) as error:
            refused = refusal(dialect, problem_of(error))
            # Not read to its end: nobody can tell where the connection's next request begins.
            refused.force_close()
            return refused
        try:
            facts = await _run(len(body), dialect.read_request, body)
        except InvalidInput as error:
            return refusal(dialect, problem_of(error))
        if facts.lacks_model and engine.model is not None:
            body = await _run(len(body), with_model, body, engine.model)
        recording = Recording(
            self._writer, new_id(), self._settings.records.redact, started, self._patience, self._count_lost
        )
        if call.unrecorded is None:
            recording.open(self._row(request, call, engine, dialect, facts, recording.receipt), body)
        else:
            recording.give_up(call.unrecorded)
        prompt = PromptCheck(body, f"{engine.name} {facts.model}", self._windows)
        delivery = Delivery(request, call, dialect, facts, recording, prompt)
        running = Running(request, delivery)
        self._calls.enter(running)
        try:
            return await self._answer(request, engine, dialect, body, delivery)
        except asyncio.CancelledError:
            if not running.cut:
                delivery.client_gone()
                raise
            running.take_over()
            return await delivery.stopped()
        except Exception:
            # The edge of a call: whatever reef does wrong, the client gets an answer and the record an end.
            log.exception("a call could not be answered")
            return await delivery.faulted()
        finally:
            self._calls.leave(running)
            self.unrecorded += delivery.response is not None and not delivery.recorded

    async def models(self, request: web.Request, engine: Engine, name: str | None = None) -> web.StreamResponse:
        """The engine's own model list, as it sends it; its one known model where it has no list. Not recorded.

        With `name` that model alone.
        """
        return await list_models(self._upstream, request, engine, name)

    async def unrecorded_relay(
        self, request: web.Request, engine: Engine, route: str, dialect: Dialect = CHAT_DIALECT
    ) -> web.StreamResponse:
        """Answer a call of which no record is kept: `route` below the engine's address."""
        if self._calls.draining:
            return refusal(dialect, _STOPPING)
        running = Running(request, None)
        self._calls.enter(running)
        try:
            body = await received(request.content, request.client_max_size)
            return await pass_through(self._upstream, request, body, engine, route, dialect, ENGINE_WAIT_S)
        except TooLarge as error:
            return refusal(dialect, problem_of(error))
        except asyncio.CancelledError:
            # Where the reply has begun the connection is closed already, and an error would stand in its middle.
            if not running.cut or running.client_gone:
                raise
            running.take_over()
            return refusal(dialect, _STOPPING)
        finally:
            self._calls.leave(running)

    async def drain(self, seconds: float) -> None:
        """Take no more calls, give the running ones `seconds`, then end them with the dialect's error."""
        await self._calls.drain(seconds)

    async def close(self) -> None:
        """End what is left and close the connections to the upstreams."""
        await self._calls.drain(0)
        await self._upstream.close()

    def _count_lost(self) -> None:
        self.lost += 1

    async def _answer(
        self, request: web.Request, engine: Engine, dialect: Dialect, body: bytes, delivery: Delivery
    ) -> web.StreamResponse:
        tries = Tries(self._settings.inference, delivery.recording.attempts)
        while True:
            try:
                return await self._try(request, engine, dialect, body, delivery, tries)
            except BrokenOff:
                wait = tries.broken_off(delivery.load_id)
            if wait is None:
                return await delivery.refused(tries.given_up())
            await asyncio.sleep(wait)

    async def _try(
        self, request: web.Request, engine: Engine, dialect: Dialect, body: bytes, delivery: Delivery, tries: Tries
    ) -> web.StreamResponse:
        try:
            await engine.ready(ENGINE_WAIT_S)
        except ReefError as error:
            return await delivery.refused(problem_of(error))
        delivery.load_id = engine.load_id
        tries.begin(engine.load_id)
        spoken = await engine.find_dialects()
        native = spoken is None or dialect.name in spoken
        if not native and (estimate := await _stand_in(dialect, body)) is not None:
            return await deliver_estimate(delivery, estimate)
        try:
            if spoken is None or native:
                sending = await _run(len(body), as_it_came, engine, dialect, request, body)
            else:
                receipt = delivery.recording.receipt
                sending = await _run(len(body), translated_request, engine, dialect, request, body, receipt, spoken)
        except ReefError as error:
            return await delivery.refused(problem_of(error))
        delivery.sends(sending)
        heard = sending.exchange.upstream if sending.exchange else dialect.name
        delivery.asks_again = engine.breaks_off and heard == CHAT
        try:
            reply = await self._upstream.post(engine, sending, delivery.recording.attempts)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return await delivery.refused(self._upstream.problem(engine, error))
        engine.observed(None)
        try:
            if reply.status in ABSENT and (estimate := await _stand_in(dialect, body)) is not None:
                return await deliver_estimate(delivery, estimate)
            if window.may_be_one(engine, reply):
                return await window.deliver_refusal(delivery, engine, reply)
            return await self._deliver(reply, delivery, sending.exchange)
        except ClientGone:
            delivery.client_gone()
            assert delivery.response is not None
            return delivery.response
        finally:
            # Gives the connection back when the reply was read to its end, and closes it when it was not.
            reply.release()

    async def _deliver(self, reply: Reply, delivery: Delivery, exchange: Exchange | None) -> web.StreamResponse:
        if reply.status < 200:
            # The connection speaks another protocol from here on.
            reply.close()
            message = f"the model server answered with status {reply.status}, which is no answer to a call"
            return await delivery.refused(Problem(502, message, "api_error", "unexpected_status"))
        delivery.status = reply.status
        keep_raw = self._settings.records.keep_raw_streams
        if exchange is not None:
            return await deliver_translated(delivery, reply, exchange, keep_raw)
        streams = is_event_stream(reply) and reply.status < 400
        if streams and not delivery.asked.stream:
            return await deliver_folded(delivery, reply)
        if streams and encodings.named(reply.headers) is None:
            copy = StreamCopy(delivery.dialect, delivery.recording, keep_raw)
            return await deliver_stream(delivery, reply, copy, headers.returned(reply.headers))
        return await deliver_whole(delivery, reply)

    def _row(
        self,
        request: web.Request,
        call: Call,
        engine: Engine,
        dialect: Dialect,
        facts: RequestFacts,
        receipt: str,
    ) -> OpenRecord:
        return OpenRecord(
            receipt=receipt,
            scenario=call.scenario,
            dialect=dialect.name,
            route=request.path,
            request=None,
            model=facts.model or engine.model,
            streaming=facts.stream,
            source=call.source,
            session=call.session or session_from(request.headers) or facts.session,
            adapter=call.adapter,
            version=call.version,
            engine=engine.name,
            load_id=engine.load_id,
            side_call=call.side_call or not dialect.trainable or is_side_call(facts, request.headers),
            preview=facts.preview or None,
            follows=facts.follows,
            tags=headers.tags(request.headers),
            redact=self._settings.records.redact,
        )


async def _stand_in(dialect: Dialect, body: bytes) -> bytes | None:
    return None if dialect.trainable else await _run(len(body), dialect.stand_in, body)


async def _run(size: int, function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Call `function`, in a thread when it works on many bytes."""
    return await asyncio.to_thread(function, *arguments, **more) if size > LARGE else function(*arguments, **more)
