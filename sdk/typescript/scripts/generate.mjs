// Writes src/generated from the contract: models, the operation table, and one method per operation.
//
//     node scripts/generate.mjs [CONFORMANCE_FOLDER] [TARGET_FOLDER]
//
// Nothing here knows about streams, tools or retries: that runtime is written by hand, once.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const HEAD = "// Generated from the contract by scripts/generate.mjs: do not edit.\n\n";
const CLASSES = { tools: "UserTools", files: "WorkspaceFiles" };
const HAND_WRITTEN = new Set(["chats.events", "chats.events_history", "completions.list"]);
const NOTES = {
  resolveChatApproval: "Only where the capabilities announce `approval`: the original alpha answers 409.",
  steerChatTurn: "Without a target it is for the orchestrator. Unless `steer` is announced it may do nothing.",
  cancelChatTurn: "The end is observed as `turn.cancelled` on the stream, not by this answer.",
  claimChatTool: "Where `tool_claims` is announced: the call is this holder's, or the answer is 409.",
  createApiKey: "`token` is in this answer and never again: store it now. A key lasts 30 days by default.",
  deleteUserTool: "Tools are addressed by name and shared by all workspaces of their owner.",
  downloadArtifact: "For the parts of a signed URL; `downloadSigned` takes the URL as it was given.",
};

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const pascal = (name) => camel(`_${name}`);
// The contract's inventory avoids the reserved words of one language; the wire names are free of that.
const plain = (name) => name.replace(/_$/, "");
const pathNames = (path) => [...path.matchAll(/{(\w+)}/g)].map((match) => match[1]);

// ---- types: as TypeScript says them, and as the runtime checks them

const WORDS = { str: "string", int: "number", float: "number", bool: "boolean", datetime: "string", object: "unknown" };
WORDS.None = "null";
WORDS.FileInput = "Upload";
const LETTERS = { str: "s", int: "i", float: "f", bool: "b", datetime: "d", object: "*", None: "n" };

function split(text, on) {
  const parts = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "[") depth++;
    else if (text[at] === "]") depth--;
    else if (depth === 0 && text.startsWith(on, at)) {
      parts.push(text.slice(start, at));
      start = at + on.length;
    }
  }
  return [...parts, text.slice(start)];
}

function typeOf(text, given = false) {
  const options = split(text, " | ");
  if (given && options.includes("datetime")) return "Date | string";
  if (options.length > 1) return options.map((option) => typeOf(option, given)).join(" | ");
  const [, outer, inner] = /^(\w+)\[(.*)\]$/.exec(text) ?? [];
  if (outer === "list") return `${atom(typeOf(inner, given))}[]`;
  if (outer === "Sequence") return `readonly ${atom(typeOf(inner, given))}[]`;
  if (outer === "dict") return "Record<string, unknown>";
  if (outer === "Mapping") return "Readonly<Record<string, unknown>>";
  if (outer === "Literal") return split(inner, ", ").join(" | ");
  return WORDS[text] ?? text;
}

const atom = (type) => (/[ |]/.test(type) ? `(${type})` : type);

function shapeOf(text) {
  const options = split(text, " | ");
  if (options.length > 1) return options.map(shapeOf).join("|");
  const [, outer, inner] = /^(\w+)\[(.*)\]$/.exec(text) ?? [];
  if (outer === "list") return `[${shapeOf(inner)}`;
  if (outer === "dict") return "m";
  return LETTERS[text] ?? `@${text}`;
}

// ---- the files

function models(contract) {
  const out = [HEAD, 'import type { Resource } from "../resources.js";\n'];
  const table = [];
  for (const [name, fields] of Object.entries(contract.models)) {
    const lines = Object.entries(fields).map(([field, { type, required }]) => {
      const nullable = required || split(type, " | ").includes("None") || type === "object";
      return `  readonly ${field}${required ? "" : "?"}: ${typeOf(type)}${nullable ? "" : " | null"};`;
    });
    out.push(`\nexport interface ${name} extends Resource {\n${lines.join("\n")}\n}\n`);
    const shapes = Object.entries(fields).map(
      ([field, { type, required }]) => `${field}${required ? "" : "?"}:${shapeOf(type)}`,
    );
    table.push(`  ${name}: "${shapes.join(" ")}",\n`);
  }
  const shapes = [
    HEAD,
    "/** The fields of every model, as `resources.ts` reads them. */\n",
    `export const MODELS: Readonly<Record<string, string>> = {\n${table.join("")}};\n`,
  ];
  return { models: out.join(""), shapes: shapes.join("") };
}

function given(operation) {
  return [...operation.query, ...operation.header, ...(operation.body?.fields ?? [])];
}

const paramsName = (operation) => `${pascal(operation.id)}Params`;

function operations(contract) {
  const known = new Set();
  const use = (type) => {
    const words = type.match(/\b[A-Z]\w+/g) ?? [];
    if (!words.every((word) => contract.models[word])) return "unknown";
    for (const word of words) known.add(word);
    return type;
  };
  const params = [];
  for (const [name, fields] of Object.entries(contract.params)) {
    const lines = Object.entries(fields).map(
      ([field, { type, required }]) => `  ${field}${required ? "" : "?"}: ${typeOf(type, true)};\n`,
    );
    params.push(`\nexport interface ${name} {\n${lines.join("")}}\n`);
  }
  const map = [];
  const table = [];
  for (const operation of contract.operations) {
    const items = given(operation);
    if (items.length > 0) {
      const lines = items.map(
        ({ name, type, required }) => `  ${plain(name)}${required ? "" : "?"}: ${typeOf(type, true)};\n`,
      );
      params.push(`\n/** Arguments of \`${operation.id}\`. */\nexport interface ${paramsName(operation)} {\n${lines.join("")}}\n`);
    }
    const path = pathNames(operation.path).map((name) => `${name}: string`);
    const own = path.length > 0 ? `{ ${path.join("; ")} }` : "";
    const args = [own, items.length > 0 ? paramsName(operation) : ""].filter(Boolean).join(" & ") || "{}";
    const result = { json: use(typeOf(operation.result.type ?? "object")), none: "void", bytes: "ByteStream", events: "never" };
    map.push(`  ${operation.id}: { args: ${args}; result: ${result[operation.result.kind]} };\n`);
    table.push(`  ${operation.id}: ${row(operation)},\n`);
  }
  return [
    HEAD,
    'import type { ByteStream } from "../downloads.js";\n',
    'import type { Upload } from "../uploads.js";\n',
    `import type { ${[...known].sort().join(", ")} } from "./models.js";\n`,
    ...params,
    "\n/** Every operation of the contract: its arguments and its result. */\n",
    `export interface Operations {\n${map.join("")}}\n`,
    "\nexport type OperationId = keyof Operations;\n",
    "\n/** One row of the contract's inventory. `query` and `header` map argument names to wire names. */\n",
    "export interface Operation {\n",
    "  method: string;\n  path: string;\n  result: string;\n  type?: string;\n  unwrap?: string;\n  auth?: true;\n  negotiated?: true;\n",
    "  query?: Record<string, string>;\n  header?: Record<string, string>;\n  body?: string[];\n  files?: string[];\n  media?: string;\n}\n",
    `\nexport const OPERATIONS: Readonly<Record<OperationId, Operation>> = {\n${table.join("")}};\n`,
  ].join("");
}

function row(operation) {
  const { body, result } = operation;
  const wires = (items) => Object.fromEntries(items.map((item) => [plain(item.name), item.wire]));
  const files = (body?.fields ?? []).filter((item) => item.type.includes("FileInput")).map((item) => item.name);
  const shape = result.type?.startsWith("list[") ? `[${result.type.slice(5, -1)}` : result.type;
  const all = {
    method: operation.method,
    path: operation.path,
    result: result.kind,
    type: contract.models[shape?.replace("[", "")] ? shape : undefined,
    unwrap: result.path || undefined,
    auth: operation.auth || undefined,
    negotiated: operation.negotiated || undefined,
    query: operation.query.length > 0 ? wires(operation.query) : undefined,
    header: operation.header.length > 0 ? wires(operation.header) : undefined,
    body: body?.fields.length > 0 ? body.fields.map((item) => item.name) : undefined,
    files: files.length > 0 ? files : undefined,
    media: body?.media,
  };
  return JSON.stringify(all).replace(/"(\w+)":/g, "$1: ").replaceAll(",", ", ");
}

function method(operation) {
  const path = pathNames(operation.path);
  const items = given(operation);
  const signature = path.map((name) => `${camel(name)}: string`);
  const passed = path.map((name) => (camel(name) === name ? name : `${name}: ${camel(name)}`));
  if (items.length > 0) {
    const must = items.some((item) => item.required);
    signature.push(`params: ${paramsName(operation)}${must ? "" : " = {}"}`);
    passed.push("...params");
  }
  const reads = operation.method === "GET" && operation.result.kind === "json";
  signature.push(`options?: ${reads ? "ReadOptions" : "CallOptions"}`);
  const kind = { json: typeOf(operation.result.type ?? "object"), none: "void", bytes: "ByteStream" }[operation.result.kind];
  const note = NOTES[operation.id];
  const doc = `\`${operation.id}\`: ${operation.method} ${operation.path}`;
  const name = camel(operation.sdk.split(".")[1]);
  const object = passed.length > 0 ? `{ ${passed.join(", ")} }` : "{}";
  return (
    (note ? `  /**\n   * ${doc}\n   *\n   * ${note}\n   */\n` : `  /** ${doc} */\n`) +
    `  ${name}(${signature.join(", ")}): Promise<${kind}> {\n` +
    `    return this.core.call("${operation.id}", ${object}, options);\n  }\n`
  );
}

function services(contract) {
  const groups = new Map();
  for (const operation of contract.operations) {
    if (!operation.sdk || HAND_WRITTEN.has(operation.sdk)) continue;
    const service = operation.sdk.split(".")[0];
    groups.set(service, [...(groups.get(service) ?? []), operation]);
  }
  const classes = [...groups].map(([service, items]) => {
    const title = CLASSES[service] ?? pascal(service);
    return `\nexport class ${title}Operations extends Service {\n${items.map(method).join("\n")}}\n`;
  });
  const text = classes.join("");
  const words = new Set(text.match(/\b[A-Z]\w+/g));
  const used = Object.keys(contract.models).filter((name) => words.has(name)).sort();
  const params = contract.operations.map(paramsName).filter((name) => words.has(name)).sort();
  return [
    HEAD,
    'import type { CallOptions, ReadOptions } from "../core.js";\n',
    'import type { ByteStream } from "../downloads.js";\n',
    'import { Service } from "../service.js";\n',
    `import type {\n${used.map((name) => `  ${name},\n`).join("")}} from "./models.js";\n`,
    `import type {\n${params.map((name) => `  ${name},\n`).join("")}} from "./operations.js";\n`,
    text,
  ].join("");
}

const source = process.argv[2] ?? join(here, "../../../conformance");
const target = process.argv[3] ?? join(here, "../src/generated");
const read = (name) => JSON.parse(readFileSync(join(source, "contract", name), "utf8"));
const contract = read("operations.json");
contract.operations.push(...read("extensions.json").operations);
mkdirSync(target, { recursive: true });
const files = { ...models(contract), operations: operations(contract), services: services(contract) };
for (const [name, text] of Object.entries(files)) writeFileSync(join(target, `${name}.ts`), text);
