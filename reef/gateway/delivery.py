"""Handing one reply to one client: the receipt in its place, the record settled before the end.

This module holds what both forms share; `reef.gateway.whole` sends a reply that is one body, `reef.gateway.streamed`
one that is a stream of events.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from reef.gateway import headers
from reef.gateway.call import Call
from reef.gateway.dialect import Dialect, Problem, ReplyFacts, RequestFacts
from reef.gateway.prompt_cut import PromptCheck
from reef.gateway.recording import Recording
from reef.gateway.sending import Sending
from reef.gateway.streaming import StreamCopy
from reef.records.calls import Settlement, State
from reef.text import one_line

FAULT = Problem(500, "reef failed inside this call (hint: reef logs)", hint="reef logs")
STOPPING = Problem(503, "reef is stopping; the reply ends here", code="stopping")


class ClientGone(ConnectionError):
    """The client closed its connection while the reply was being sent."""


class Delivery:
    """What one call sends to its client, and how its record ends."""

    def __init__(
        self,
        request: web.Request,
        call: Call,
        dialect: Dialect,
        asked: RequestFacts,
        recording: Recording,
        prompt: PromptCheck,
    ) -> None:
        self.dialect = dialect
        self.asked = asked
        self.recording = recording
        self.asks_again = False
        """Whether a reply that the engine breaks off can be asked for again."""
        self.load_id: str | None = None
        self.status: int | None = None
        """Status of the upstream's reply."""
        self.stream: StreamCopy | None = None
        """The copy of a stream that is being read."""
        self.response: web.StreamResponse | None = None
        """The reply once its first byte was handed to the client's connection."""
        self.recorded = False
        """Whether the client holds a receipt."""
        self.notes: dict[str, Any] = {} if call.rules is None else {"rules": call.rules}
        """What is worth knowing of the call later, for its record."""
        self.more_headers: dict[str, str] = {}
        """Headers of reef's own, beside those of every reply."""
        self._request = request
        self._call = call
        self._prompt = prompt

    def sends(self, sending: Sending) -> None:
        """Note what goes to the upstream; nothing has come back yet."""
        self.notes.update(sending.notes)
        if sending.exchange is not None:
            self.more_headers[headers.TRANSLATED] = sending.exchange.note()
        self.stream = None
        self.recording.first_byte = None

    async def refused(self, problem: Problem) -> web.StreamResponse:
        """Answer with an error of reef's own; the record is `failed`."""
        return await self._error(problem, "failed")

    async def stopped(self) -> web.StreamResponse:
        """Tell the client that reef is ending; the record is `partial`."""
        return await self._given_up(STOPPING, "partial")

    async def faulted(self) -> web.StreamResponse:
        """Tell the client of a fault of reef's own; the record is `failed`."""
        return await self._given_up(FAULT, "failed")

    async def _given_up(self, problem: Problem, state: State) -> web.StreamResponse:
        if self.response is None:
            return await self._error(problem, state)
        await self.settle(self.end(state, self.said(), problem.message))
        return await self.break_off(problem)

    def client_gone(self) -> None:
        """Settle the record as `cancelled` with what was said so far; nobody is left to wait for it."""
        self.recording.abandon(self.end("cancelled", self.said(), "the client closed the connection"))

    def said(self) -> ReplyFacts | None:
        """What a stream has said so far."""
        return None if self.stream is None else self.stream.fold.facts(finished=True)

    def end(self, state: State, facts: ReplyFacts | None, error: str | None = None) -> Settlement:
        """How the record ends."""
        raw = self.stream.raw if self.stream is not None else None
        found = self.recording.settlement(
            state, facts, error=error, raw=raw, status=self.status, load_id=self.load_id, notes=self.notes or None
        )
        found.trainable = self.dialect.trainable
        if facts is not None:
            if self.dialect.trainable:
                found.expected_tokens, found.prompt_cut = self._prompt.judge(facts)
            if facts.bad_arguments:
                found.trainable = False
                found.notes = {**self.notes, "invalid_arguments": list(facts.bad_arguments)}
        return found

    async def settle(self, end: Settlement) -> bool:
        """Store the end of the record; True when the client's receipt resolves to it now."""
        settling = self.recording.settle(end)
        if not self.recorded:
            self.recording.let_go(settling)
            return False
        return await self.recording.stored(settling)

    async def send_whole(
        self, status: int, found: CIMultiDict[str], body: bytes, end: Settlement
    ) -> web.StreamResponse:
        """Send a reply in one piece, when its row and the row's end are on disk."""
        settling = self.recording.settle(end)
        await self._receipt(found)
        if self.recorded:
            await self.recording.stored(settling)
        else:
            self.recording.let_go(settling)
        self.response = web.Response(status=status, headers=found, body=body)
        return self.response

    async def begin(self, status: int, found: CIMultiDict[str], length: int | None = None) -> web.StreamResponse:
        """Send the headers, when the row is on disk."""
        await self._receipt(found)
        self.response = web.StreamResponse(status=status, headers=found)
        self.response.content_length = length
        try:
            await self.response.prepare(self._request)
        except ConnectionError:
            raise ClientGone from None
        return self.response

    async def write(self, data: bytes) -> None:
        """Send bytes on. Raises ClientGone."""
        assert self.response is not None
        try:
            await self.response.write(data)
        except ConnectionError:
            raise ClientGone from None

    async def finish(self) -> web.StreamResponse:
        """End a reply that was begun."""
        assert self.response is not None
        try:
            await self.response.write_eof()
        except ConnectionError:
            # Everything is settled; a client that did not wait for the end changes nothing.
            return self.response
        return self.response

    async def break_off(self, problem: Problem) -> web.StreamResponse:
        """End a reply that was begun so that no client takes it for whole."""
        assert self.response is not None
        try:
            if self.stream is not None:
                # An event that broke off in its middle is ended, or it would swallow the error.
                cut = b"\n\n" if self.stream.watch.inside else b""
                await self.write(cut + self.dialect.error_event(problem))
                return await self.finish()
        except ClientGone:
            return self.response
        self.response.force_close()
        if self._request.transport is not None:
            self._request.transport.close()
        return self.response

    async def _error(self, problem: Problem, state: State) -> web.StreamResponse:
        body = self.dialect.error_body(problem)
        self.status = problem.status
        facts = ReplyFacts(body=body, error=problem.message)
        found = CIMultiDict({"content-type": "application/json", **problem.headers})
        return await self.send_whole(problem.status, found, body, self.end(state, facts))

    async def _receipt(self, found: CIMultiDict[str]) -> None:
        """Put reef's own headers into `found`: the receipt only when it resolves now."""
        found.update(self.more_headers)
        problem = await self.recording.opened()
        if problem is None:
            self.recorded = True
            found[headers.RECEIPT] = self.recording.receipt
            found[headers.REQUEST_ID] = self.recording.receipt
        else:
            found[headers.UNRECORDED] = one_line(problem, 200).encode("ascii", "replace").decode()
        if self._call.release_id is not None:
            found[headers.RELEASE] = self._call.release_id
