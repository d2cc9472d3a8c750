/** People as the hub tells of them. */
import type { components } from "./api";

type Schemas = components["schemas"];

/** The hub leaves nothing out of it. */
export type Account = Required<Schemas["Account"]>;
export type SessionView = Omit<Schemas["SessionView"], "account"> & { account: Account | null };
export type Role = Account["role"];
export const ROLES = ["viewer", "member", "admin"] as const satisfies readonly Role[];
