import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HubError, IdempotencyKeys, request, whenLoginIsNeeded, wordsOf } from "./request";

const asked = vi.fn<typeof fetch>();

function answers(status: number, body: string, headers: Record<string, string> = {}): void {
  asked.mockResolvedValue(new Response(body === "" ? null : body, { status, headers }));
}

const error = (code: string, message: string, path?: string): string =>
  JSON.stringify({ error: { code, message, path } });

async function failed(): Promise<HubError> {
  const found: unknown = await request("GET", "session").catch((reason: unknown) => reason);
  expect(found).toBeInstanceOf(HubError);
  return found as HubError;
}

describe("request", () => {
  beforeEach(() => {
    vi.stubGlobal("fetch", asked);
    vi.stubGlobal("document", { baseURI: "https://hub.test/gpus/" });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    asked.mockReset();
    whenLoginIsNeeded(() => undefined);
  });

  it("asks below the base path, and leaves out what is not there", async () => {
    answers(200, '{"next": 3}');
    const query = { text: "a&b", before: null, limit: 50, since: undefined };
    expect(await request<{ next: number }>("GET", "audit", { query })).toEqual({ next: 3 });
    const [address, { method, body, headers }] = asked.mock.calls[0] as [string, RequestInit];
    expect(address).toBe("https://hub.test/gpus/api/v1/audit?text=a%26b&limit=50");
    expect([method, body, headers]).toEqual(["GET", null, { Accept: "application/json" }]);
  });

  it("sends JSON, and takes no content for an answer", async () => {
    answers(204, "");
    expect(await request("PATCH", "account", { body: { display_name: "Anna" } })).toBeUndefined();
    const [, { body, headers }] = asked.mock.calls[0] as [string, RequestInit];
    expect(body).toBe('{"display_name":"Anna"}');
    expect(headers).toMatchObject({ "Content-Type": "application/json" });
  });

  it("gives the hub's own error, with field and patience", async () => {
    answers(429, error("too_many_attempts", "wait a little", "name"), { "Retry-After": "30" });
    const found = await failed();
    expect(found).toMatchObject({ status: 429, code: "too_many_attempts", path: "name", retrySeconds: 30 });
    expect(wordsOf(found)).toBe("Wait a little.");
  });

  it("keeps what an error tells beyond the common shape", async () => {
    const body = { error: { code: "conflict", message: "taken" }, conflicts: [{ id: 4 }] };
    answers(409, JSON.stringify(body));
    expect(await failed()).toMatchObject({ answer: body, path: null, retrySeconds: null });
  });

  it.each(["<html>Bad gateway</html>", "", "[]", "null", '{"error": "text"}', '{"error": {"code": 7}}'])(
    "takes %j for the answer of something else than the hub",
    async (body) => {
      answers(502, body, { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" });
      const found = await failed();
      expect(found).toMatchObject({ status: 502, code: "unreadable", retrySeconds: null });
      expect(found.message).toContain("502");
    },
  );

  it("does not take a proxy's own page for a success", async () => {
    answers(200, "<html>Please accept our terms</html>");
    expect((await failed()).code).toBe("unreadable");
  });

  it("tells a hub that cannot be reached, and stays silent about what was given up", async () => {
    asked.mockRejectedValue(new TypeError("Failed to fetch"));
    expect(await failed()).toMatchObject({ status: 0, code: "unreachable" });
    const given = new AbortController();
    given.abort();
    const reason: unknown = await request("GET", "audit", { signal: given.signal }).catch((e: unknown) => e);
    expect(reason).not.toBeInstanceOf(HubError);
  });

  it("tells that someone has to log in, and not that a password was wrong", async () => {
    const told = vi.fn();
    whenLoginIsNeeded(told);
    answers(401, error("wrong_password", "name or password are wrong"));
    await failed();
    expect(told).not.toHaveBeenCalled();
    answers(401, error("login_needed", "log in first"));
    await failed();
    expect(told).toHaveBeenCalledOnce();
  });

  it("sends a key that stays while the same is asked for again, and is new for anything else", async () => {
    const keys = new IdempotencyKeys();
    answers(201, "[]");
    const body = { any: "2 x A100", end: "2h" };
    await request("POST", "bookings", { body, idempotencyKey: keys.of(body) });
    const headers = asked.mock.lastCall?.[1]?.headers as Record<string, string>;
    expect(headers["Idempotency-Key"]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys.of({ ...body })).toBe(headers["Idempotency-Key"]);
    const other = keys.of({ ...body, end: "3h" });
    expect(other).not.toBe(headers["Idempotency-Key"]);
    keys.clear();
    expect(keys.of({ ...body, end: "3h" })).not.toBe(other);
  });
});
