import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { HtmlTagDescriptor, Plugin } from "vite";
import { defineConfig } from "vitest/config";

const link = (rel: string, href: string): HtmlTagDescriptor => ({
  tag: "link",
  attrs: { rel, href: `./${href}` },
  injectTo: "head",
});

/** Names in index.html what start.ts loads next, so that the browser fetches all of it at once. */
function announceMain(): Plugin {
  return {
    name: "announce-main",
    transformIndexHtml: {
      order: "post",
      handler(_, { bundle }) {
        const chunks = Object.values(bundle ?? {}).filter((file) => file.type === "chunk");
        const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
        const holds = ({ moduleIds }: { moduleIds: string[] }, file: string): boolean =>
          moduleIds.some((id) => id.endsWith(file));
        const wanted = new Set(chunks.filter((chunk) => holds(chunk, "/src/main.ts")));
        // A set also gives what is added while it is walked.
        for (const chunk of wanted)
          for (const name of chunk.imports) {
            const imported = byName.get(name);
            if (imported && !holds(imported, "/src/start.ts")) wanted.add(imported);
          }
        const styles = [...wanted].flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]);
        return [
          ...styles.map((href) => link("stylesheet", href)),
          ...[...wanted].map(({ fileName }) => link("modulepreload", fileName)),
        ];
      },
    },
  };
}

export default defineConfig({
  plugins: [svelte(), announceMain()],
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
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What the start page needs is one file, which compresses better than a dozen; start.ts does not wait for it.
          groups: [
            { name: "start", test: /\/src\/start\.ts$|preload-helper/, priority: 2 },
            { name: "main", test: /\/src\/main\.ts$|\/gpu-fault\.ts$/, priority: 1 },
            // Small parts that most other pages share: one file of them is smaller than six.
            { name: "kit", test: /\/pages\/(PageHead|Crumbs|Facts|SortButton|MoreRows|Places)\.svelte/ },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": process.env.GPUHERD_HUB ?? "http://127.0.0.1:8470" } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
