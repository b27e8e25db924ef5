// Builds dist: a few chunks as ESM and as CommonJS by esbuild, the types by tsc.
//
// Both systems get the same text but for its imports and exports. Files of the same name lie side by side in the packed
// archive, and none is longer than what gzip looks back on: the second copy costs next to nothing there. Few files load
// faster than many.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
/** Where the code is cut: what these modules need becomes chunks. */
const SEAMS = ["errors", "generated/operations", "generated/shapes", "generated/services", "requests", "keys", "core", "tool-calls"];

rmSync(dist, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ["index", ...SEAMS].map((name) => join(root, "src", `${name}.ts`)),
  absWorkingDir: root,
  outbase: join(root, "src"),
  outdir: join(dist, "esm"),
  chunkNames: "[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "neutral",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});
mkdirSync(join(dist, "cjs"), { recursive: true });
for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
  const file = resolve(root, path);
  if (entryPoint !== undefined && basename(file) !== "index.js") rmSync(file);
  else writeFileSync(join(dist, "cjs", basename(file)), commonJs(readFileSync(file, "utf8")));
}
execFileSync(process.execPath, [tsc, "--emitDeclarationOnly"], { cwd: root, stdio: "inherit" });
dropUnusedImports(join(dist, "esm"));
keepReachable(join(dist, "esm"));
writeFileSync(join(dist, "cjs/package.json"), '{"type":"commonjs"}\n');
writeFileSync(join(dist, "cjs/index.d.ts"), await commonJsTypes());

/** The CommonJS twin of a minified ES module: `import{a as b}from"x";…export{b as c};`. */
function commonJs(text) {
  const renamed = (list, sign) => list.split(",").map((item) => item.split(" as ").join(sign));
  let exported = "";
  const body = text
    .replace(/import\{([^}]*)\}from("[^"]*");/g, (_, list, from) => `const{${renamed(list, ":")}}=require(${from});`)
    .replace(/import("[^"]*");/g, (_, from) => `require(${from});`)
    .replace(/export\{([^}]*)\};?\s*$/, (_, list) => {
      exported = list.split(",").map((item) => item.split(" as ").reverse().join(":")).join();
      return "";
    });
  if (/\b(?:import|export)[{*"]/.test(body)) throw new Error(`an import or export was not understood: ${body.slice(0, 200)}`);
  return `"use strict";${body}module.exports={${exported}};\n`;
}

/** What is internal is stripped from the types, but not the imports that were for it alone. */
function dropUnusedImports(folder) {
  for (const name of readdirSync(folder, { recursive: true }).filter((each) => each.endsWith(".d.ts"))) {
    const text = readFileSync(join(folder, name), "utf8");
    const kept = text.replace(/^import (?:type )?\{([^}]*)\} from "[^"]*";\n/gm, (line, list) => {
      const names = list.split(",").map((item) => item.trim().replace(/^type /, "").split(" as ").at(-1));
      const rest = text.replace(line, "").replace(/\/\*[\s\S]*?\*\//g, "");
      return names.some((each) => each && new RegExp(`\\b${each}\\b`).test(rest)) ? line : "";
    });
    writeFileSync(join(folder, name), kept);
  }
}

/** Drop the types of modules that the public ones do not mention. */
function keepReachable(folder) {
  const reached = new Set();
  const visit = (path) => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, from] of text.matchAll(/from "(\.[^"]*)\.js"/g)) visit(join(dirname(path), `${from}.d.ts`));
  };
  visit(join(folder, "index.d.ts"));
  for (const name of readdirSync(folder, { recursive: true })) {
    if (name.endsWith(".d.ts") && !reached.has(join(folder, name))) rmSync(join(folder, name));
  }
}

/** The types of the CommonJS half: those of the other, and its values one by one. */
async function commonJsTypes() {
  const from = '"../esm/index.js" with { "resolution-mode": "import" }';
  const values = Object.entries(await import(pathToFileURL(join(dist, "esm/index.js")).href));
  const lines = values.map(([name, value]) => {
    const type = String(value).startsWith("class") ? `export type ${name} = api.${name};\n` : "";
    return `export declare const ${name}: typeof api.${name};\n${type}`;
  });
  return `import type * as api from ${from};\nexport type * from ${from};\n${lines.join("")}`;
}
