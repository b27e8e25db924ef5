// Builds dist: every module as ESM and as CommonJS by esbuild, the types by tsc.
//
// Both systems get the same text but for its imports and exports. Files of the same name lie side by side in the packed
// archive, so the second copy costs next to nothing there.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

/** The CommonJS twin of a minified ES module: `import{a as b}from"x";…export{b as c};`. */
function commonJs(text) {
  const names = (list, sign) => list.split(",").filter(Boolean).map((item) => item.split(" as ").join(sign));
  const exported = [];
  const body = text
    .replace(/import\{([^}]*)\}from("[^"]*");/g, (_, list, from) => `const{${names(list, ":")}}=require(${from});`)
    .replace(/import("[^"]*");/g, (_, from) => `require(${from});`)
    .replace(/export\*from("[^"]*");/g, (_, from) => (exported.push(`...require(${from})`), ""))
    .replace(/export\{([^}]*)\}from("[^"]*");/g, (_, list, from) => {
      const local = names(list, ":").map((item) => item.split(":")[0]);
      exported.push(...names(list, " as ").map((item) => `${item.split(" as ").at(-1)}:require(${from}).${item.split(" as ")[0]}`));
      return local && "";
    })
    .replace(/export\{([^}]*)\};?\s*$/, (_, list) => {
      exported.push(...names(list, " as ").map((item) => item.split(" as ").reverse().join(":")));
      return "";
    });
  if (/\b(?:import|export)[{*"]/.test(body)) throw new Error(`an import or export was not understood: ${body.slice(0, 200)}`);
  return `"use strict";${body}module.exports={${exported}};\n`;
}

rmSync(dist, { recursive: true, force: true });
const sources = readdirSync(join(root, "src"), { recursive: true }).filter((name) => name.endsWith(".ts"));
await build({
  entryPoints: sources.map((name) => join(root, "src", name)),
  outbase: join(root, "src"),
  outdir: join(dist, "esm"),
  format: "esm",
  platform: "neutral",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
for (const name of sources.map((source) => source.replace(/\.ts$/, ".js"))) {
  const target = join(dist, "cjs", name);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, commonJs(readFileSync(join(dist, "esm", name), "utf8")));
}
execFileSync(process.execPath, [tsc, "--emitDeclarationOnly"], { cwd: root, stdio: "inherit" });
cpSync(join(dist, "esm"), join(dist, "cjs"), { recursive: true, filter: (path) => !path.endsWith(".js") });
writeFileSync(join(dist, "cjs/package.json"), '{"type":"commonjs"}\n');
