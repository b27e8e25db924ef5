// The package as it is published: its files, its types, its size, what it costs to load.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as esm from "envai-client";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);
const npx = (name, ...given) =>
  spawnSync(join(root, "node_modules/.bin", name), given, { cwd: root, encoding: "utf8", env: { ...process.env, CI: "1" } });

test("the generated sources are those of the contract", () => {
  const target = mkdtempSync(join(tmpdir(), "envai-generated-"));
  execFileSync(process.execPath, ["scripts/generate.mjs", join(root, "../../conformance"), target], { cwd: root });
  const names = readdirSync(target).sort();
  assert.deepEqual(names, readdirSync(join(root, "src/generated")).sort());
  for (const name of names) {
    assert.equal(readFileSync(join(root, "src/generated", name), "utf8"), readFileSync(join(target, name), "utf8"), name);
  }
});

test("every operation of the contract is a method or can be called by its id", () => {
  const read = (name) => JSON.parse(readFileSync(join(root, "../../conformance/contract", `${name}.json`))).operations;
  const client = new esm.EnvaiClient({ baseUrl: "http://localhost" });
  for (const { id, sdk } of [...read("operations"), ...read("extensions")]) {
    assert.ok(id in esm.OPERATIONS, id);
    if (sdk === null) continue;
    const [service, method] = sdk.split(".").map((name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()));
    assert.equal(typeof client[service][method], "function", sdk);
  }
});

test("ESM and CommonJS export the same names", () => {
  assert.deepEqual(Object.keys(require("envai-client")).sort(), Object.keys(esm).sort());
});

test("tsc finds every deliberate mistake and nothing else", () => {
  const done = npx("tsc", "-p", "tests/types/tsconfig.json", "--pretty", "false");
  const found = new Set([...done.stdout.matchAll(/^(.+?)\((\d+),\d+\): error/gm)].map(([, file, line]) => `${file}:${line}`));
  const lines = readFileSync(join(root, "tests/types/mistakes.ts"), "utf8").split("\n");
  const marked = lines.flatMap((line, at) => (line.includes("// MISTAKE") ? [`tests/types/mistakes.ts:${at + 1}`] : []));
  assert.ok(marked.length >= 20);
  assert.deepEqual([...found].sort(), marked.sort(), done.stdout);
});

test("publint and arethetypeswrong find nothing", () => {
  const lint = npx("publint", "--strict");
  assert.equal(lint.status, 0, lint.stdout + lint.stderr);
  const types = npx("attw", "--pack", ".", "--profile", "node16", "--format", "ascii");
  assert.equal(types.status, 0, types.stdout + types.stderr);
});

test("the packed archive is small, has its licences and no map of this machine", () => {
  const [packed] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--ignore-scripts", "--json"], { cwd: root, encoding: "utf8" }));
  const names = packed.files.map(({ path }) => path);
  for (const name of ["LICENSE", "LICENSE-envai", "README.md", "CHANGELOG.md"]) assert.ok(names.includes(name), name);
  assert.ok(names.every((name) => /^(dist\/|LICENSE|README|CHANGELOG|package\.json)/.test(name)), names.join(" "));
  // Both module systems, types with their documentation, README and licences.
  assert.ok(packed.size <= 80 * 1024, `${packed.size} bytes`);
  console.log(`packed: ${packed.size} bytes`);
});

test("a dry run of publishing succeeds", () => {
  const done = spawnSync("npm", ["publish", "--dry-run", "--ignore-scripts", "--offline"], { cwd: root, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
});

test("nothing is imported from outside", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json")));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
});
