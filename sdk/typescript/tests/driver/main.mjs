// The driver as a program of Node, Deno or Bun: JSON lines on standard input and output. See conformance/DRIVER.md.
//
//     node main.mjs [sqlite]        the ledger: files, or node:sqlite
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { inspect } from "node:util";
import * as sdk from "../../dist/esm/index.js";
import { Performer, inventory } from "./perform.mjs";

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const contract = (name) => JSON.parse(readFileSync(new URL(`../../../../conformance/contract/${name}.json`, import.meta.url)));
const runtimes = [["deno", globalThis.Deno?.version.deno], ["bun", globalThis.Bun?.version], ["node", process.versions.node]];

async function openLedger(path) {
  if (process.argv[2] !== "sqlite") return new sdk.FileLedger(path);
  const { DatabaseSync } = await import("node:sqlite");
  return new sdk.SqliteLedger(new DatabaseSync(path));
}

const performer = new Performer({
  sdk,
  ledger: openLedger,
  runtime: runtimes.find(([, version]) => version).join("/"),
  notify: say,
  print: (error) => {
    const logs = [error.message, String(error), error.stack, inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error)];
    return [...logs, inspect({ error }), `${error.cause ?? ""}`].join("\n");
  },
});
Object.assign(performer, inventory(contract("operations"), contract("extensions")));

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() !== "") say(await performer.reply(JSON.parse(line)));
}
process.exit(0);
