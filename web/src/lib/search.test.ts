import { describe, expect, it } from "vitest";
import { nameTerm, parseQuery, replaceTerms } from "./search";

const meanings = (text: string): unknown[] =>
  parseQuery(text).terms.map(({ source: _, isNegated, ...meaning }) =>
    isNegated ? { not: meaning } : meaning,
  );

describe("parseQuery", () => {
  it("reads words: states, what stands for itself, and all else as text", () => {
    expect(meanings("free A100 mine mig trouble")).toEqual([
      { kind: "state", states: ["free"] },
      { kind: "text", text: "a100" },
      { kind: "mine" },
      { kind: "slice" },
      { kind: "trouble" },
    ]);
    expect(meanings("free,held")).toEqual([{ kind: "state", states: ["free", "held"] }]);
    expect(meanings("state:offline")).toEqual([{ kind: "state", states: ["offline"] }]);
    expect(meanings('"free"')).toEqual([{ kind: "text", text: "free" }]);
    expect(meanings("free-01 constructor")).toEqual([
      { kind: "text", text: "free-01" },
      { kind: "text", text: "constructor" },
    ]);
  });

  it("reads devices as people write them, and no UUID as such", () => {
    expect(meanings("GPU01/3 a-1/0-3,6 n/3.1")).toEqual([
      { kind: "place", node: "gpu01", parts: ["3"] },
      { kind: "place", node: "a-1", parts: [[0, 3], "6"] },
      { kind: "place", node: "n", parts: ["3.1"] },
    ]);
    const text = "mig-gpu-0c6e5a1b-1111-2222-3333-444455556666/1/0";
    expect(meanings(text)).toEqual([{ kind: "text", text }]);
    expect(meanings("gpu01/ /3 a/b")).toEqual(
      ["gpu01/", "/3", "a/b"].map((each) => ({ kind: "text", text: each })),
    );
  });

  it("keeps blanks in quotes together and turns a minus around", () => {
    expect(meanings('-offline -"two words" -')).toEqual([
      { not: { kind: "state", states: ["offline"] } },
      { not: { kind: "text", text: "two words" } },
      { kind: "text", text: "-" },
    ]);
    expect(meanings('"never closed')).toEqual([{ kind: "text", text: "never closed" }]);
    expect(meanings('" ')).toEqual([{ kind: "text", text: " " }]);
    expect(meanings('"')).toEqual([]);
  });

  it("reads names, several of them, to the letter in quotes", () => {
    expect(meanings('user:anna,"Ben B" host:n-* type:"A100 80GB"')).toEqual([
      {
        kind: "name",
        field: "user",
        names: [
          { text: "anna", isExact: false },
          { text: "ben b", isExact: true },
        ],
      },
      { kind: "name", field: "host", names: [{ text: "n-*", isExact: false }] },
      { kind: "name", field: "type", names: [{ text: "a100 80gb", isExact: true }] },
    ]);
  });

  it.each([
    ["mem>40G", "mem", ">", 40 * 2 ** 30],
    ["mem>=40", "mem", ">=", 40 * 2 ** 30],
    ["VRAM≥512MiB", "mem", ">=", 512 * 2 ** 20],
    ["used<1.5T", "used", "<", 1.5 * 2 ** 40],
    ["idle>30m", "idle", ">", 1800],
    ["idle>30", "idle", ">", 1800],
    ["for<=2h", "for", "<=", 7200],
    ["idle>1d", "idle", ">", 86400],
    ["util<10", "util", "<", 0.1],
    ["util=100%", "util", "=", 1],
    ["temp>80°C", "temp", ">", 80],
    ["power>=300W", "power", ">=", 300],
    ["free>=4", "free", ">=", 4],
  ])("reads %s", (text, quantity, comparison, value) => {
    expect(meanings(text)).toEqual([{ kind: "quantity", quantity, comparison, value }]);
  });

  it.each([
    ["mem>lots", "size"],
    ["idle>soon", "time"],
    ["util<", "percent"],
    ["temp>hot", "number"],
    ["colour:red", "field"],
    ["speed>9", "field"],
    ["user:", "name"],
    ["state:asleep", "name"],
  ])("tells what is wrong with %s and goes on", (text, reason) => {
    const { terms, complaints } = parseQuery(`free ${text}`);
    expect(complaints).toEqual([{ source: text, reason }]);
    expect(terms).toHaveLength(1);
  });

  it("takes anything without falling over", () => {
    for (const text of [
      "::::",
      ">>=<",
      '"""',
      '-"',
      "a:b:c",
      "mem>>40G",
      "<script>",
      "\u202e",
      "x".repeat(5000),
    ])
      expect(() => parseQuery(text)).not.toThrow();
  });
});

describe("replaceTerms", () => {
  it("puts in, takes out, and leaves what was typed", () => {
    const isState = (term: { kind: string }): boolean => term.kind === "state";
    expect(replaceTerms("", isState, "free")).toBe("free");
    expect(replaceTerms('free  "two words" mem>x', isState, "free,held")).toBe('"two words" mem>x free,held');
    expect(replaceTerms("a100 free", isState)).toBe("a100");
  });

  it("writes names so that they are read again as they are", () => {
    const [term] = parseQuery(nameTerm("type", 'A100 "80GB"', "L40S, new")).terms;
    expect(term).toMatchObject({
      field: "type",
      names: [
        { text: "a100 80gb", isExact: true },
        { text: "l40s, new", isExact: true },
      ],
    });
  });
});
