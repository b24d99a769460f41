"""Translation between the three dialects, for an upstream that does not speak the client's: pure functions, no I/O.

    request = exact(body)
    exchange = translate(MESSAGES, CHAT, request, receipt=receipt, created=now)
    exchange.body          what to send
    exchange.note()        what was left out, for a header
    exchange.reply(reply)  a whole reply, for the client
    exchange.bridge()      a stream, bytes to bytes
    error_reply(MESSAGES, status, body)

`fields.py` holds the tables of what becomes what, `hub.py` the common form in which every request is written down in
between, `reply.py` the same for replies, `seals.py` what happens to signed and encrypted reasoning.
"""

from reef.gateway.translate.compat import Compat, older_spellings
from reef.gateway.translate.errors import error_reply
from reef.gateway.translate.exchange import (
    UPSTREAM_HEADERS,
    Exchange,
    StreamBridge,
    StreamTranslator,
    choices,
    frame,
    translate,
)
from reef.gateway.translate.hub import CannotCarry, exact
from reef.gateway.translate.reply import Usage
from reef.gateway.translate.seals import holds_minted, without_minted_reasoning, without_minted_thinking

__all__ = [
    "UPSTREAM_HEADERS",
    "CannotCarry",
    "Compat",
    "Exchange",
    "StreamBridge",
    "StreamTranslator",
    "Usage",
    "choices",
    "error_reply",
    "exact",
    "frame",
    "holds_minted",
    "older_spellings",
    "translate",
    "without_minted_reasoning",
    "without_minted_thinking",
]
