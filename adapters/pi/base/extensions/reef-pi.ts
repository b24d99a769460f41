// What reef adds to pi: `/reefine` files an ask, `/versions` lists versions, a notice says that a newer one is there,
// and every model call carries the session it belongs to. Without reef's variables the file does nothing.
import { readFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

const URL = process.env.REEF_URL;
const TOKEN = process.env.REEF_SESSION;
const POLL_MS = 1000;
const FOLLOW_MS = 30 * 60 * 1000;
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
        const next = now.state === "published" ? "; install it outside this session with `reef-pi update`, then /reload" : "";
        const review = now.state === "pending" ? `; see it with \`reef versions show v${now.version}\`` : "";
        const reason = now.reason ?? now.meaning ?? "";
        tell(ctx, `reef: ask #${number} ${now.state}${version}: ${reason}${next}${review}`, now.version ? "info" : "warning");
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

async function versions(args: string, ctx: any): Promise<void> {
  const { scenario, releases } = await call("GET", "/reef/harness/releases");
  const [wanted, verb] = args.trim().split(/\s+/);
  if (!wanted) {
    const here = installed().version;
    const lines = releases.map((row: Json) => {
      const marks = [row.current && "served", row.version === here && "installed", row.pending && "needs your yes"];
      return `v${row.version}  ${row.summary ?? row.operation}  ${marks.filter(Boolean).join(", ")}`.trimEnd();
    });
    tell(ctx, `versions of scenario ${scenario}\n${lines.join("\n")}`);
    return;
  }
  const row = releases.find((item: Json) => `v${item.version}` === wanted || String(item.version) === wanted);
  if (!row) throw new Error(`scenario ${scenario} has no version ${wanted}`);
  const what = verb === "install" ? "install" : "show";
  const why = verb === "install" ? "a session decides nothing: " : "";
  tell(ctx, `${why}in another terminal: reef versions ${what} v${row.version} -s ${scenario}${verb ? ", then /reload" : ""}`);
}

/** Say once that a newer version is served than the one installed here. Quiet when the daemon does not answer. */
async function notice(ctx: any): Promise<void> {
  try {
    const { scenario, releases } = await call("GET", "/reef/harness/releases", undefined, 2000);
    const head = releases.find((row: Json) => row.current);
    const here = installed().version;
    if (!head || !(head.version > here)) return;
    const text = `reef: v${head.version} of scenario ${scenario} is served, v${here} is installed here`;
    const next = "; install it outside this session with `reef-pi update`";
    if (ctx.hasUI) ctx.ui.notify(`${text}${next}, then /reload`, "info");
    else process.stderr.write(`${text}${next}\n`);
  } catch {
    // A session must start without the daemon's help; the first model call says that it is not there.
  }
}

export default function (pi: any) {
  if (!URL || !TOKEN) return;
  let session = 0;
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
  });
  pi.on("session_shutdown", () => {
    session += 1;
  });
  pi.on("before_provider_headers", (event: any, ctx: any) => {
    event.headers["x-reef-session"] = ctx.sessionManager.getSessionId();
  });
}
