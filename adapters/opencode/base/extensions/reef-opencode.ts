// What reef adds to OpenCode: `/reefine` files an ask, `/versions` lists versions and installs one, a notice says that
// a newer one is there, every model call carries the session it belongs to, and the shell tool has the person's own
// folders. Without reef's variables the file does nothing. Nothing but Node's own modules may be imported: OpenCode
// would fetch anything else from the network.
import { readFileSync, writeSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";

const URL = process.env.REEF_URL;
const TOKEN = process.env.REEF_SESSION;
// The wrapper's socket: it asks the person, outside of this agent, to install a version.
const CONFIRM = process.env.REEF_CONFIRM;
// With a screen, plugins run in a thread beside it.
const SCREEN = !isMainThread;
const SHELL = "REEF_SHELL_";
const POLL_MS = 1000;
const FOLLOW_MS = 30 * 60 * 1000;
const TOAST_MS = 15000;
const START_MS = 2000;
// Words of a model or of a person may hold anything; nothing of it may steer the terminal.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
const COMMANDS: Record<string, string> = {
  reefine: "Ask reef for a change in how this agent works",
  versions: "List reef's versions of this harness, or install one: v3 install",
};

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

/** The installed version's number and release, read anew: an install may come during the session. */
function installed(): { version: number; release: string | undefined } {
  try {
    const facts = JSON.parse(readFileSync(join(dirname(process.env.REEF_TREE ?? ""), "install.json"), "utf8"));
    return { version: facts.version, release: facts.release_id };
  } catch {
    return { version: Number((process.env.REEF_VERSION ?? "").replace("v", "")), release: process.env.REEF_RELEASE };
  }
}

/** Have the person asked about a version (null: the newest) by the wrapper. Returns the last line of its answer. */
function ask(version: number | null): Promise<Json> {
  const outside = `reef versions install${version === null ? "" : ` v${version}`} -s ${process.env.REEF_SCENARIO}`;
  if (!CONFIRM) throw new Error(`nobody can be asked from here; in another terminal: ${outside}`);
  return new Promise((resolve, reject) => {
    let got = "";
    const question = { install: version, screen: SCREEN ? "alternate" : "main" };
    const socket = createConnection(CONFIRM, () => socket.write(JSON.stringify(question) + "\n"));
    socket.setEncoding("utf8");
    socket.on("data", (block: string) => {
      got += block;
    });
    socket.on("end", () => {
      const last = got.trim().split("\n").pop();
      resolve(last ? JSON.parse(last) : {});
    });
    socket.on("error", () => reject(new Error(`the wrapper does not answer; in another terminal: ${outside}`)));
  });
}

/** Where a person reads a line: the chat of a session, or standard output and standard error without a screen. */
class Person {
  private busy = new Set<string>();
  private waiting: [string, string][] = [];

  constructor(private client: any) {}

  toast(text: string, variant: string): void {
    const message = text.replace(CONTROLS, "\ufffd");
    void this.client.tui.showToast({ body: { message, variant, duration: TOAST_MS } }).catch(() => undefined);
  }

  async tell(session: string, text: string, level: "info" | "success" | "error" = "info"): Promise<void> {
    const safe = text.replace(CONTROLS, "\ufffd");
    if (!SCREEN) writeSync(level === "error" ? 2 : 1, safe + "\n");
    else if (!this.busy.has(session)) await this.chat(session, safe);
    else {
      // A line in the middle of a turn would be taken for a message that is still to be answered.
      this.toast(safe, level);
      this.waiting.push([session, safe]);
    }
  }

  /** `ignored` keeps the line out of what the model is sent. */
  private async chat(session: string, text: string): Promise<void> {
    const body = { noReply: true, parts: [{ type: "text", text, ignored: true }] };
    const done = await this.client.session.prompt({ path: { id: session }, body }).catch(() => undefined);
    if (!done || done.error) this.toast(text, "info");
  }

  /** Told of every change between working and idle; says what had to wait. */
  async works(session: string, busy: boolean): Promise<void> {
    if (busy) {
      this.busy.add(session);
      return;
    }
    this.busy.delete(session);
    const now = this.waiting.filter(([whose]) => whose === session);
    this.waiting = this.waiting.filter(([whose]) => whose !== session);
    for (const [, text] of now) await this.chat(session, text);
  }
}

/** Follow an ask until it is settled, then say what became of it. Ends quietly with the process. */
async function follow(person: Person, session: string, id: string, number: number): Promise<void> {
  const until = Date.now() + FOLLOW_MS;
  try {
    while (Date.now() < until) {
      const now = await call("GET", `/reef/harness/requests/${id}/progress`);
      if (now.settled) {
        const version = now.version ? ` v${now.version}` : "";
        const next = now.version ? `; install it with /versions v${now.version} install` : "";
        const text = `reef: ask #${number} ${now.state}${version}: ${now.reason ?? now.meaning ?? ""}${next}`;
        person.toast(text, now.version ? "success" : "warning");
        await person.tell(session, text);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } catch (error) {
    await person.tell(session, `reef: ${(error as Error).message}`, "error");
  }
}

async function reefine(words: string, person: Person, session: string): Promise<void> {
  if (!words) {
    await person.tell(session, "usage: /reefine what should change, in plain words");
    return;
  }
  const body = { text: words, session: process.env.REEF_SESSION_ID, release_id: installed().release };
  const filed = await call("POST", "/reef/train", body);
  await person.tell(session, `reef: ask #${filed.number} filed for scenario ${filed.scenario}`);
  if (SCREEN) void follow(person, session, filed.agent_record_id, filed.number);
  else await person.tell(session, `follow it with: reef asks watch ${filed.number} -s ${filed.scenario}`);
}

async function install(version: number | null, person: Person, session: string): Promise<void> {
  const done = await ask(version);
  if (done.error) throw new Error(done.error.message + (done.error.hint ? ` (${done.error.hint})` : ""));
  if (done.declined) return person.tell(session, `reef: v${done.declined.version} was not installed`);
  if (!done.installed) throw new Error("the wrapper gave no answer");
  const here = `v${done.installed.version}`;
  if (!done.installed.changed) return person.tell(session, `reef: ${here} is installed already`);
  const rest = "its rules count from the next turn on, everything else from the next start of reef-opencode";
  await person.tell(session, `reef: ${here} is installed; ${rest}`, "success");
}

async function versions(words: string, person: Person, session: string): Promise<void> {
  const [wanted, verb] = words.split(/\s+/);
  if (wanted === "install" && verb === undefined) return install(null, person, session);
  const { scenario, releases } = await call("GET", "/reef/harness/releases");
  if (!wanted) {
    const here = installed().version;
    const lines = releases.map((row: Json) => {
      const marks = [row.current && "served", row.version === here && "installed", row.pending && "needs your yes"];
      marks.push(row.pinned && "pinned");
      return `v${row.version}  ${row.summary ?? row.operation}  ${marks.filter(Boolean).join(", ")}`.trimEnd();
    });
    return person.tell(session, `versions of scenario ${scenario}\n${lines.join("\n")}`);
  }
  const row = releases.find((item: Json) => `v${item.version}` === wanted || String(item.version) === wanted);
  if (!row) throw new Error(`scenario ${scenario} has no version ${wanted}`);
  if (verb === "install") return install(row.version, person, session);
  const show = `reef versions show v${row.version} -s ${scenario}`;
  return person.tell(session, `in another terminal: ${show}; here: /versions v${row.version} install`);
}

/** Say that a newer version is served than the one installed here. Quiet when the daemon does not answer. */
async function notice(say: (text: string, version: number) => void): Promise<void> {
  try {
    const { scenario, releases } = await call("GET", "/reef/harness/releases", undefined, 2000);
    const head = releases.find((row: Json) => row.current);
    const here = installed().version;
    if (!head || !(head.version > here)) return;
    say(`reef: v${head.version} of scenario ${scenario} is served, v${here} is installed here`, head.version);
  } catch {
    // A session must start without the daemon's help; the first model call says that it is not there.
  }
}

/** What was typed behind a command. `opencode run --command` puts an argument of several words into quotes. */
function typed(words: string): string {
  const quoted = SCREEN ? null : /^"([\s\S]*)"$/.exec(words.trim());
  return (quoted ? quoted[1].replaceAll('\\"', '"') : words).trim();
}

export const Reef = async ({ client }: any): Promise<Json> => {
  if (!URL || !TOKEN) return {};
  const person = new Person(client);
  let told = 0;
  // Sessions that an agent started for another one: no person reads them.
  const helpers = new Set<string>();
  const glance = () => notice((text) => person.toast(`${text}; install it with /versions install`, "info"));
  if (SCREEN) {
    // The screen does not listen yet while plugins are loaded.
    setTimeout(glance, START_MS);
  } else if (process.stderr.isTTY) {
    // Without a screen the notice is for a person who watches, never for a program that reads the output.
    void notice((text) => process.stderr.write(`${text}; install it with \`reef-opencode update\`\n`));
  }
  return {
    config: async (config: Json) => {
      config.command = { ...config.command };
      for (const [name, description] of Object.entries(COMMANDS)) {
        config.command[name] = { description, template: "$ARGUMENTS" };
      }
    },
    event: async ({ event }: any) => {
      if (event.type === "session.created") {
        if (event.properties.info.parentID) helpers.add(event.properties.info.id);
        else if (SCREEN) void glance();
      }
      if (!SCREEN || event.type !== "session.status") return;
      const { sessionID, status } = event.properties;
      await person.works(sessionID, status.type !== "idle");
      if (status.type !== "idle" || helpers.has(sessionID)) return;
      void notice((text, version) => {
        if (version <= told) return;
        told = version;
        void person.tell(sessionID, `${text}; install it with /versions install`);
      });
    },
    "chat.headers": async (input: any, output: any) => {
      output.headers["x-reef-session"] = input.sessionID;
    },
    "shell.env": async (_input: any, output: any) => {
      for (const [name, value] of Object.entries(process.env)) {
        if (name.startsWith(SHELL)) output.env[name.slice(SHELL.length)] = value;
      }
    },
    "command.execute.before": async (input: any) => {
      if (!(input.command in COMMANDS)) return;
      let status = 0;
      try {
        const run = input.command === "reefine" ? reefine : versions;
        await run(typed(input.arguments), person, input.sessionID);
      } catch (error) {
        status = 1;
        await person.tell(input.sessionID, `reef: ${(error as Error).message}`, "error");
      }
      // There is nothing left to do, and no other way to keep the words from the model.
      if (!SCREEN && process.argv[2] === "run") process.exit(status);
      throw new Error("done by reef; the model is not asked");
    },
  };
};
