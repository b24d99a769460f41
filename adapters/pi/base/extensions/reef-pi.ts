// What reef adds to pi: `/reefine` files an ask, `/versions` lists versions, a notice says that a newer one is there,
// and every model call carries the session it belongs to. Without reef's variables the file does nothing.
import { readFileSync, writeSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";

const URL = process.env.REEF_URL;
const TOKEN = process.env.REEF_SESSION;
// The wrapper's socket: it asks the person, outside of this agent, to install a version.
const CONFIRM = process.env.REEF_CONFIRM;
const POLL_MS = 1000;
const FOLLOW_MS = 30 * 60 * 1000;
const AFTER_RELOAD_MS = 300;
const AFTER_RELOAD = "REEF_AFTER_RELOAD";
// Words of a model or of a person may hold anything; nothing of it may steer the terminal.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

type Json = Record<string, any>;

/** One call to the daemon with the session's token. Throws an Error whose message is the daemon's own sentence. */
async function call(method: string, path: string, body?: Json, timeout = 15000): Promise<Json> {
  const headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` };
  if (body) headers["content-type"] = "application/json";
  let reply: Response;
  try {
    reply = await fetch(URL + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(timeout),
    });
  } catch {
    throw new Error("the daemon is not running (reef up)");
  }
  const value: Json = await reply.json().catch(() => ({}));
  if (reply.ok) return value;
  const error = value.error ?? {};
  throw new Error((error.message ?? `the daemon answered with status ${reply.status}`) + (error.hint ? ` (${error.hint})` : ""));
}

/** The installed version's number and release, read anew: an install during the session is seen after /reload. */
function installed(): { version: number; release: string | undefined } {
  try {
    const facts = JSON.parse(readFileSync(join(dirname(process.env.REEF_TREE ?? ""), "install.json"), "utf8"));
    return { version: facts.version, release: facts.release_id };
  } catch {
    return { version: Number((process.env.REEF_VERSION ?? "").replace("v", "")), release: process.env.REEF_RELEASE };
  }
}

/** One line to the person: in the chat where there is one, else on stdout, or stderr when stdout is for a program. */
function tell(ctx: any, text: string, level: "info" | "warning" | "error" = "info"): void {
  const safe = text.replace(CONTROLS, "\ufffd");
  if (ctx.hasUI) ctx.ui.notify(safe, level);
  // pi keeps its own process.stdout to itself in these modes and sends what others write there to stderr.
  else writeSync(ctx.mode === "print" && level !== "error" ? 1 : 2, safe + "\n");
}

/** Follow an ask until it is settled, then say what became of it. Ends quietly with the session. */
async function follow(ctx: any, id: string, number: number, ended: () => boolean): Promise<void> {
  const until = Date.now() + FOLLOW_MS;
  try {
    while (!ended() && Date.now() < until) {
      const now = await call("GET", `/reef/harness/requests/${id}/progress`);
      if (ended()) return;
      if (now.settled) {
        ctx.ui.setStatus("reef", undefined);
        const version = now.version ? ` v${now.version}` : "";
        const next = now.version ? `; install it with /versions v${now.version} install` : "";
        const reason = now.reason ?? now.meaning ?? "";
        tell(ctx, `reef: ask #${number} ${now.state}${version}: ${reason}${next}`, now.version ? "info" : "warning");
        return;
      }
      ctx.ui.setStatus("reef", `reef: ask #${number} ${now.state}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } catch (error) {
    if (!ended()) {
      ctx.ui.setStatus("reef", undefined);
      tell(ctx, `reef: ${(error as Error).message}`, "error");
    }
  }
}

async function reefine(args: string, ctx: any, ended: () => boolean): Promise<void> {
  const text = args.trim();
  if (!text) {
    tell(ctx, "usage: /reefine what should change, in plain words");
    return;
  }
  const body = { text, session: process.env.REEF_SESSION_ID, release_id: installed().release };
  const filed = await call("POST", "/reef/train", body);
  tell(ctx, `reef: ask #${filed.number} filed for scenario ${filed.scenario}`);
  if (ctx.hasUI) void follow(ctx, filed.agent_record_id, filed.number, ended);
  else tell(ctx, `follow it with: reef asks watch ${filed.number} -s ${filed.scenario}`);
}

/** Have the person asked about a version (null: the newest) by the wrapper. Returns the last line of its answer. */
function ask(version: number | null, progress: (text: string) => void): Promise<Json> {
  const outside = `reef versions install${version === null ? "" : ` v${version}`} -s ${process.env.REEF_SCENARIO}`;
  if (!CONFIRM) throw new Error(`nobody can be asked from here; in another terminal: ${outside}`);
  return new Promise((resolve, reject) => {
    let got = "";
    let last: Json = {};
    const socket = createConnection(CONFIRM, () => socket.write(JSON.stringify({ install: version }) + "\n"));
    socket.setEncoding("utf8");
    socket.on("data", (block: string) => {
      const lines = (got + block).split("\n");
      got = lines.pop() ?? "";
      for (const line of lines) {
        last = JSON.parse(line);
        if (last.progress) progress(String(last.progress));
      }
    });
    socket.on("end", () => resolve(last));
    socket.on("error", () => reject(new Error(`the wrapper does not answer; in another terminal: ${outside}`)));
  });
}

async function install(version: number | null, ctx: any): Promise<void> {
  const done = await ask(version, (text) => ctx.ui.setStatus("reef", `reef: ${text.replace(CONTROLS, "\ufffd")}`));
  ctx.ui.setStatus("reef", undefined);
  if (done.error) throw new Error(done.error.message + (done.error.hint ? ` (${done.error.hint})` : ""));
  if (done.declined) return tell(ctx, `reef: v${done.declined.version} was not installed`);
  if (!done.installed) throw new Error("the wrapper gave no answer");
  const here = `v${done.installed.version}`;
  if (!done.installed.changed) return tell(ctx, `reef: ${here} is installed already`);
  if (!ctx.hasUI || !ctx.reload) return tell(ctx, `reef: ${here} is installed; /reload reads it`);
  // The chat is drawn anew and this file read anew, so the next one of it says what happened.
  process.env[AFTER_RELOAD] = `reef: ${here} is installed`;
  await ctx.reload();
}

async function versions(args: string, ctx: any): Promise<void> {
  const words = args.trim().split(/\s+/);
  if (words[0] === "install" && words.length === 1) return install(null, ctx);
  const { scenario, releases } = await call("GET", "/reef/harness/releases");
  const [wanted, verb] = words;
  if (!wanted) {
    const here = installed().version;
    const lines = releases.map((row: Json) => {
      const marks = [row.current && "served", row.version === here && "installed", row.pending && "needs your yes"];
      marks.push(row.pinned && "pinned");
      return `v${row.version}  ${row.summary ?? row.operation}  ${marks.filter(Boolean).join(", ")}`.trimEnd();
    });
    tell(ctx, `versions of scenario ${scenario}\n${lines.join("\n")}`);
    return;
  }
  const row = releases.find((item: Json) => `v${item.version}` === wanted || String(item.version) === wanted);
  if (!row) throw new Error(`scenario ${scenario} has no version ${wanted}`);
  if (verb === "install") return install(row.version, ctx);
  tell(ctx, `in another terminal: reef versions show v${row.version} -s ${scenario}; here: /versions v${row.version} install`);
}

/** The newest version that the person was told about. */
let told = 0;

/** Say once that a newer version is served than the one installed here. Quiet when the daemon does not answer. */
async function notice(ctx: any): Promise<void> {
  try {
    const { scenario, releases } = await call("GET", "/reef/harness/releases", undefined, 2000);
    const head = releases.find((row: Json) => row.current);
    const here = installed().version;
    if (!head || !(head.version > here) || head.version <= told) return;
    told = head.version;
    const text = `reef: v${head.version} of scenario ${scenario} is served, v${here} is installed here`;
    const pinned = releases.some((row: Json) => row.version === here && row.pinned);
    const install = ctx.hasUI ? "install it with /versions install" : "install it with `reef-pi update`";
    const next = pinned ? "pinned, so it stays: reef versions unpin" : install;
    if (ctx.hasUI) ctx.ui.notify(`${text}; ${next}`, "info");
    else process.stderr.write(`${text}; ${next}\n`);
  } catch {
    // A session must start without the daemon's help; the first model call says that it is not there.
  }
}

/** The rules of the installed tree as they are now. */
function rules(): string {
  try {
    return readFileSync(join(process.env.REEF_TREE ?? "", "AGENTS.md"), "utf8").trim();
  } catch {
    return "";
  }
}

export default function (pi: any) {
  if (!URL || !TOKEN) return;
  let session = 0;
  let loaded = rules();
  const guarded = (run: (args: string, ctx: any) => Promise<void>) => async (args: string, ctx: any) => {
    try {
      await run(args, ctx);
    } catch (error) {
      tell(ctx, `reef: ${(error as Error).message}`, "error");
    }
  };
  pi.registerCommand("reefine", {
    description: "Ask reef for a change in how this agent works",
    handler: guarded((args, ctx) => {
      const mine = session;
      return reefine(args, ctx, () => session !== mine);
    }),
  });
  pi.registerCommand("versions", { description: "List reef's versions of this harness", handler: guarded(versions) });
  pi.on("session_start", (_event: any, ctx: any) => {
    session += 1;
    // Without a screen the notice is for a person who watches, never for a program that reads the output.
    if (ctx.hasUI || process.stderr.isTTY) void notice(ctx);
    loaded = rules();
    const left = process.env[AFTER_RELOAD];
    delete process.env[AFTER_RELOAD];
    // pi's own line about the reload comes after this event and would take the place of a line that is there already.
    if (left) setTimeout(() => tell(ctx, left), AFTER_RELOAD_MS);
  });
  pi.on("before_agent_start", (event: any) => {
    // pi reads its rules at start and on /reload only; what was installed since counts from this turn on.
    const now = rules();
    if (now === loaded) return undefined;
    const old: string = event.systemPrompt;
    return { systemPrompt: loaded && old.includes(loaded) ? old.replace(loaded, () => now) : `${old}\n\n${now}` };
  });
  pi.on("agent_end", (_event: any, ctx: any) => {
    if (ctx.hasUI) void notice(ctx);
  });
  pi.on("session_shutdown", () => {
    session += 1;
  });
  pi.on("before_provider_headers", (event: any, ctx: any) => {
    event.headers["x-reef-session"] = ctx.sessionManager.getSessionId();
  });
}
