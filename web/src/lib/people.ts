/** People as the hub tells of them. */

export type Role = "viewer" | "member" | "admin";
export const ROLES = ["viewer", "member", "admin"] as const satisfies readonly Role[];

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly display_name: string;
  readonly role: Role;
  readonly groups: readonly string[];
  readonly source: "local" | "pam" | "ldap" | "oidc" | "proxy";
  readonly linux_names: readonly string[];
  readonly is_disabled: boolean;
  readonly created_at: number;
  readonly last_login_at: number | null;
}

export interface SessionView {
  readonly account: Account | null;
  readonly privacy: "counts" | "public" | "member" | "admin" | null;
  readonly is_set_up: boolean;
  readonly is_booking: boolean;
  readonly takes_passwords: boolean;
  readonly redirects: readonly { readonly label: string; readonly path: string }[];
  readonly zone: string;
}
