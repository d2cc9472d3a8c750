import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  // Every address in the build is relative: the hub writes <base href> for the path it is served under.
  base: "./",
  build: {
    // The build hook names a folder beside the served one and swaps them when the build has succeeded.
    outDir: process.env.GPUHERD_WEB_OUT ?? "../src/gpuherd/api/page",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows neither data: addresses nor inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": process.env.GPUHERD_HUB ?? "http://127.0.0.1:8470" } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
