// A model server that answers at once or streams paced events: `node server.js PORT EVENTS PACE_MS` says where it is.
"use strict";
const http = require("node:http");

const [port, events, pace] = process.argv.slice(2).map(Number);
const facts = { id: "chatcmpl-1", created: 1700000000, model: "m" };
const message = { role: "assistant", content: "the quick brown fox ".repeat(30) };
// About what a tokenizer makes of a request; reef looks closer at a call whose count is far too low for its text.
const usage = (bytes) => ({ prompt_tokens: bytes >> 2, completion_tokens: 200, total_tokens: (bytes >> 2) + 200 });
const reply = (bytes) => JSON.stringify({
  ...facts, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }], usage: usage(bytes),
});
const models = JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] });
const event = (delta, finish_reason) => "data: " + JSON.stringify({
  ...facts, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }],
}) + "\n\n";
const word = event({ content: "word " }, null);
const last = event({}, "stop") + "data: [DONE]\n\n";

function whole(response, status, text) {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function stream(response) {
  const start = performance.now();
  let sent = 0;
  const tick = () => {
    if (response.destroyed) return;
    if (sent === events) return response.end(last);
    response.write(word);
    sent += 1;
    // By the clock of the whole stream: a late event does not delay those behind it, so all streams last as long.
    setTimeout(tick, Math.max(0, start + sent * pace - performance.now()));
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  tick();
}

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces);
    // Clients write `stream` before the messages or after them; looking through those would cost more than the answer.
    const ends = body.toString("latin1", 0, 200) + body.toString("latin1", Math.max(0, body.length - 200));
    if (request.url.endsWith("/models")) return whole(response, 200, models);
    if (!request.url.endsWith("/chat/completions")) return whole(response, 404, '{"error":{"message":"no such route"}}');
    return /"stream": ?true/.test(ends) ? stream(response) : whole(response, 200, reply(body.length));
  });
});
server.keepAliveTimeout = 0;
server.listen(port, "127.0.0.1", () => console.log(`listening http://127.0.0.1:${server.address().port}`));
