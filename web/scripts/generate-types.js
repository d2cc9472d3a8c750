/**
 * Writes src/lib/api.d.ts from the hub's own OpenAPI document.
 *
 * The document is asked of the Python package (PYTHON names the interpreter; else the project's virtual
 * environment, else python3). Its hash goes into the first line: a test compares it, and needs no Node to do so.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const root = new URL("../../", import.meta.url);
const target = new URL("../src/lib/api.d.ts", import.meta.url);
const ownPython = fileURLToPath(new URL(".venv/bin/python", root));
const python = process.env.PYTHON ?? (existsSync(ownPython) ? ownPython : "python3");

const schema = execFileSync(python, ["-m", "gpuherd.api.openapi"], { cwd: root, maxBuffer: 2 ** 26 });
const hash = createHash("sha256").update(schema).digest("hex");
// Fields at their default are left out by the hub, so a default does not make a field present.
const types = await openapiTS(JSON.parse(schema.toString()), { defaultNonNullable: false });
writeFileSync(
  target,
  `// Generated from OpenAPI ${hash} by \`npm run generate\`; do not edit.\n${astToString(types)}`,
);
