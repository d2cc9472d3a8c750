import { describe, expect, it } from "vitest";
import type { Account } from "../lib/people";
import { matches } from "./matching";

const CARLA: Account = {
  id: "c",
  name: "carla",
  display_name: "Carla Ruiz",
  role: "member",
  groups: ["vision", "nlp"],
  source: "ldap",
  linux_names: ["cruiz"],
  is_disabled: false,
  created_at: 0,
  last_login_at: null,
};

describe("matches", () => {
  it.each(["", "carla", "RUIZ", "vision ruiz", "cruiz", "ldap member", "  nlp "])("finds by %j", (query) => {
    expect(matches(CARLA, query)).toBe(true);
  });

  it.each(["anna", "vision anna", "disabled", "admin"])("does not find by %j", (query) => {
    expect(matches(CARLA, query)).toBe(false);
  });
});
