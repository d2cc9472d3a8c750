/**
 * The one way to ask the hub for something besides the stream. What is not a success is a `HubError`, whoever found it
 * out: the hub, which answers every error in one shape, a proxy on the way, or the browser.
 */
import type { components } from "./api";

type ErrorBody = components["schemas"]["ErrorBody"];

export class HubError extends Error {
  override readonly name = "HubError";
  /** The answer's status; 0 if there was no answer. */
  readonly status: number;
  /** Stable, for programs: the hub's own, `unreachable`, `slow`, or `unreadable` for what the hub did not write. */
  readonly code: string;
  /** The field that is wrong. */
  readonly path: string | null;
  /** When it makes sense to ask again, in seconds from now. */
  readonly retrySeconds: number | null;
  /** The whole answer: some errors tell more than the common shape has. */
  readonly answer: unknown;

  constructor(
    status: number,
    code: string,
    message: string,
    {
      path = null,
      retrySeconds = null,
      answer = null,
    }: { path?: string | null; retrySeconds?: number | null; answer?: unknown } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.path = path;
    this.retrySeconds = retrySeconds;
    this.answer = answer;
  }
}

export interface RequestOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Added to the address; what is `null` or `undefined` is left out, a list is given one by one. */
  query?: Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;
  /** Makes the request safe to repeat: the hub carries it out once for each key. */
  idempotencyKey?: string;
  /** Ends the request; it then fails with the browser's `AbortError`, which nobody needs to see. */
  signal?: AbortSignal;
}

type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** Longer than any deadline of the hub's own, so that its answer is the one that is shown. */
const DEADLINE_MILLISECONDS = 30_000;

let onLoginNeeded: () => void = () => undefined;

/** Be told whenever the hub answers that someone has to log in first. */
export function whenLoginIsNeeded(action: () => void): void {
  onLoginNeeded = action;
}

/** The address of something below `api/v1/`, under whatever path the hub is served. */
export function apiUrl(path: string, query: RequestOptions["query"] = {}): string {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      if (one !== null && one !== undefined) url.searchParams.append(name, String(one));
  return url.href;
}

/** Ask; `path` is below `api/v1/`, with what comes from elsewhere in it encoded. Gives `undefined` for no content. */
export async function request<Answer = void>(
  method: Method,
  path: string,
  { body, query, signal, idempotencyKey }: RequestOptions = {},
): Promise<Answer> {
  const deadline = AbortSignal.timeout(DEADLINE_MILLISECONDS);
  let response: Response;
  let text: string;
  try {
    response = await fetch(apiUrl(path, query), {
      method,
      cache: "no-store",
      headers: {
        Accept: "application/json",
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (deadline.aborted) throw new HubError(0, "slow", "The hub took too long to respond. Try again.");
    throw new HubError(0, "unreachable", "Cannot reach the hub. Try again in a moment.");
  }
  const answer = parse(text);
  if (response.ok && answer !== UNREADABLE) return answer as Answer;
  const error = errorOf(response, answer);
  if (error.code === "login_needed") onLoginNeeded();
  throw error;
}

/** What to say of something that failed. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? sentence(error.message) : String(error);
}

const UNREADABLE = Symbol("unreadable");

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return UNREADABLE;
  }
}

function errorOf(response: Response, answer: unknown): HubError {
  const { status } = response;
  const wait = Number(response.headers.get("Retry-After") ?? NaN);
  const retrySeconds = Number.isFinite(wait) ? Math.max(0, wait) : null;
  const detail = (answer as ErrorBody | undefined)?.error;
  if (typeof detail?.code !== "string" || typeof detail.message !== "string")
    return new HubError(
      status,
      "unreadable",
      `Something between this page and the hub answered with status ${status}. Try again in a moment.`,
      { retrySeconds },
    );
  return new HubError(status, detail.code, detail.message, {
    path: detail.path ?? null,
    retrySeconds,
    answer,
  });
}

/** The hub's messages begin in lower case and end without a stop, as parts of a log line do. */
function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}

/** Idempotency keys: the same key while the same body is repeated, a new key for any other body. */
export class IdempotencyKeys {
  #body = "";
  #key = "";

  of(body: unknown): string {
    const text = JSON.stringify(body);
    if (text !== this.#body || this.#key === "") {
      this.#body = text;
      this.#key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
        byte.toString(16).padStart(2, "0"),
      ).join("");
    }
    return this.#key;
  }

  /** Use a new key from now on: the request has been answered. */
  clear(): void {
    this.#key = "";
  }
}
