import { describe, expect, it } from "vitest";
import { node } from "../lib/changes.fixture";
import { NodeEntry } from "../lib/node";
import { similarNodes } from "./similar";

const nodes = ["h100-01", "h100-02", "h100-03", "h100-04", "a100-01"].map(
  (name, row) => new NodeEntry(node(row, { name, id: name })),
);
const labels = (id: string): string[] => similarNodes(nodes, id).map(({ label }) => label);

describe("similarNodes", () => {
  it("finds those that are called alike, a few of them", () => {
    expect(labels("h100-17")).toEqual(["h100-01", "h100-02", "h100-03"]);
    expect(labels("A100-01.example.org")).toEqual(["a100-01"]);
  });

  it("finds nothing where nothing is alike", () => {
    expect(labels("zeus")).toEqual([]);
  });
});
