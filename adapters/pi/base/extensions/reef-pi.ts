// What reef adds to pi: one file, loaded by pi itself from its config home.
export default function (pi: any) {
  pi.on("before_provider_headers", (event: any, ctx: any) => {
    event.headers["x-reef-session"] = ctx.sessionManager.getSessionId();
  });
}
