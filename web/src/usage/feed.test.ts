import { describe, expect, it } from "vitest";
import { HubError, type request } from "../lib/request";
import { Feed } from "./feed.svelte";

/** A hub that answers when it is told to. */
function slowHub(): {
  ask: typeof request;
  answers: ((value: unknown) => void)[];
  failures: ((error: Error) => void)[];
} {
  const answers: ((value: unknown) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const ask = (() =>
    new Promise<unknown>((resolve, reject) => {
      answers.push(resolve);
      failures.push(reject);
    })) as typeof request;
  return { ask, answers, failures };
}
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

describe("a feed", () => {
  it("has the answer to the last question, in whatever order they come", async () => {
    const { ask, answers } = slowHub();
    const feed = new Feed<string>("usage", ask);
    feed.ask({ by: "user" });
    feed.ask({ by: "node" });
    answers[1]?.("second");
    await settled();
    answers[0]?.("first");
    await settled();
    expect([feed.answer, feed.isAsking]).toEqual(["second", false]);
  });

  it("keeps what it knows while it asks, and when it fails", async () => {
    const { ask, answers, failures } = slowHub();
    const feed = new Feed<string>("usage", ask);
    feed.ask({});
    answers[0]?.("known");
    await settled();
    feed.ask({});
    expect([feed.answer, feed.isAsking]).toEqual(["known", true]);
    failures[1]?.(new HubError(503, "history_unavailable", "the history is being read, try again"));
    await settled();
    expect([feed.answer, feed.error]).toEqual(["known", "The history is being read, try again."]);
    feed.ask({});
    answers[2]?.("newer");
    await settled();
    expect([feed.answer, feed.error]).toEqual(["newer", null]);
  });

  it("says nothing of a question that was given up", async () => {
    const { ask, failures } = slowHub();
    const feed = new Feed<string>("usage", ask);
    const stop = feed.ask({});
    stop();
    failures[0]?.(new Error("aborted"));
    await settled();
    expect([feed.answer, feed.error]).toEqual([null, null]);
  });
});
