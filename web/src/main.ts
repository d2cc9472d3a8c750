import "./tokens.css";
import "./base.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { leave } from "./lib/leaving";
import { session } from "./lib/session.svelte";
import type { StreamLink } from "./lib/stream-link";

export function show(link: StreamLink): void {
  const target = document.getElementById("app");
  if (!target) throw new Error("index.html has no element with the id app");
  session.start(leave);
  mount(App, { target, props: { link } });
}
