/**
 * JSON Schema (draft 2020-12), as far as the arguments of a tool need it. References stay within the document. A keyword
 * that would decide but is not known here is refused when the schema is read: nothing passes unchecked.
 */
import { isObject } from "./resources.js";

type Check = (value: unknown) => boolean;
type Schema = Readonly<Record<string, unknown>>;
type Reader = (given: never, schema: Schema, read: (schema: unknown) => Check) => Check;

const REFUSED = ["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"];
const ANYTHING: Check = () => true;
const TYPES: Readonly<Record<string, Check>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  array: Array.isArray,
  object: isObject,
};

/** A predicate for `schema`. Throws TypeError if it is no schema, or needs what is not known here. */
export function compileSchema(schema: unknown): Check {
  const compiled = new Map<unknown, Check>();
  const read = (part: unknown): Check => {
    if (typeof part === "boolean") return () => part;
    if (!isObject(part)) throw new TypeError("a schema is an object or a boolean");
    const known = compiled.get(part);
    if (known !== undefined) return known;
    let check = ANYTHING;
    compiled.set(part, (value) => check(value)); // a schema may refer to itself
    const checks = Object.keys(part).flatMap((keyword) => keywordOf(keyword, part));
    check = (value) => checks.every((one) => one(value));
    return check;
  };
  const keywordOf = (keyword: string, part: Schema): Check[] => {
    if (REFUSED.includes(keyword)) throw new TypeError(`the schema keyword ${keyword} is not supported`);
    if (keyword === "$ref") return [lazily(() => read(resolve(schema, part["$ref"])))];
    if (keyword === "$defs" || keyword === "definitions") {
      for (const each of Object.values(object(part[keyword], keyword))) read(each);
    }
    const reader = KEYWORDS[keyword];
    return reader === undefined ? [] : [reader(part[keyword] as never, part, read)];
  };
  const check = read(schema);
  return (value) => {
    try {
      return check(value);
    } catch (problem) {
      if (problem instanceof RangeError) return false; // a schema that refers to itself without end
      throw problem;
    }
  };
}

/** Resolved at once, so that a dangling reference is found when the schema is read; compiled when it is used. */
function lazily(make: () => Check): Check {
  const check = make();
  return (value) => check(value);
}

function resolve(root: unknown, ref: unknown): unknown {
  if (typeof ref !== "string" || !/^#(?:\/|$)/.test(ref)) throw new TypeError("a $ref must point into its own document");
  let at: unknown = root;
  for (const step of ref.split("/").slice(1)) {
    const name = decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) throw new TypeError("a $ref points nowhere");
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function object(given: unknown, keyword: string): Record<string, unknown> {
  if (!isObject(given)) throw new TypeError(`${keyword} must be an object`);
  return given;
}

function list(given: unknown, keyword: string): unknown[] {
  if (!Array.isArray(given)) throw new TypeError(`${keyword} must be a list`);
  return given;
}

function number(given: unknown, keyword: string): number {
  if (typeof given !== "number") throw new TypeError(`${keyword} must be a number`);
  return given;
}

function pattern(given: unknown): RegExp {
  if (typeof given !== "string") throw new TypeError("a pattern must be a string");
  try {
    return new RegExp(given, "u");
  } catch {
    throw new TypeError("a pattern is no regular expression");
  }
}

const ofString =
  (holds: (value: string) => boolean): Check =>
  (value) =>
    typeof value !== "string" || holds(value);
const ofNumber =
  (holds: (value: number) => boolean): Check =>
  (value) =>
    typeof value !== "number" || holds(value);
const ofArray =
  (holds: (value: unknown[]) => boolean): Check =>
  (value) =>
    !Array.isArray(value) || holds(value);
const ofObject =
  (holds: (value: Record<string, unknown>) => boolean): Check =>
  (value) =>
    !isObject(value) || holds(value);

function limit(keyword: string, make: (most: number) => Check): Reader {
  return (given: unknown) => make(number(given, keyword));
}

function each(keyword: string, make: (checks: Check[]) => Check): Reader {
  return (given: unknown, _, read) => make(list(given, keyword).map(read));
}

function names(given: unknown, keyword: string): string[] {
  const all = list(given, keyword);
  if (!all.every((name) => typeof name === "string")) throw new TypeError(`${keyword} must be a list of names`);
  return all as string[];
}

function typeCheck(given: unknown): Check {
  const checks = (Array.isArray(given) ? given : [given]).map((name: unknown) => {
    const check = typeof name === "string" && Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
    if (check === undefined) throw new TypeError("type must name JSON types");
    return check;
  });
  return (value) => checks.some((check) => check(value));
}

function conditional(given: unknown, schema: Schema, read: (schema: unknown) => Check): Check {
  const [test, yes, no] = [given, schema["then"] ?? true, schema["else"] ?? true].map(read);
  return (value) => (test!(value) ? yes!(value) : no!(value));
}

function items(given: unknown, schema: Schema, read: (schema: unknown) => Check): Check {
  const start = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].length : 0;
  const check = read(given);
  return ofArray((value) => value.slice(start).every(check));
}

function contains(given: unknown, schema: Schema, read: (schema: unknown) => Check): Check {
  const check = read(given);
  const { minContains = 1, maxContains = Infinity } = schema as { minContains?: number; maxContains?: number };
  return ofArray((value) => {
    const found = value.filter(check).length;
    return found >= minContains && found <= maxContains;
  });
}

function properties(given: unknown, _: Schema, read: (schema: unknown) => Check): Check {
  const checks = Object.entries(object(given, "properties")).map(([name, part]) => [name, read(part)] as const);
  return ofObject((value) => checks.every(([name, check]) => !Object.hasOwn(value, name) || check(value[name])));
}

function patterned(given: unknown, _: Schema, read: (schema: unknown) => Check): Check {
  const checks = Object.entries(object(given, "patternProperties")).map(([name, part]) => [pattern(name), read(part)] as const);
  return ofObject((value) =>
    Object.entries(value).every(([name, item]) => checks.every(([like, check]) => !like.test(name) || check(item))),
  );
}

function additional(given: unknown, schema: Schema, read: (schema: unknown) => Check): Check {
  const known = new Set(Object.keys((schema["properties"] as object | undefined) ?? {}));
  const patterns = Object.keys((schema["patternProperties"] as object | undefined) ?? {}).map(pattern);
  const check = read(given);
  return ofObject((value) =>
    Object.entries(value).every(
      ([name, item]) => known.has(name) || patterns.some((like) => like.test(name)) || check(item),
    ),
  );
}

function dependents(given: unknown, _: Schema, read: (schema: unknown) => Check): Check {
  const checks = Object.entries(object(given, "dependentSchemas")).map(([name, part]) => [name, read(part)] as const);
  return ofObject((value) => checks.every(([name, check]) => !Object.hasOwn(value, name) || check(value)));
}

function dependentNames(given: unknown): Check {
  const needs = Object.entries(object(given, "dependentRequired")).map(
    ([name, others]) => [name, names(others, "dependentRequired")] as const,
  );
  return ofObject((value) =>
    needs.every(([name, others]) => !Object.hasOwn(value, name) || others.every((other) => Object.hasOwn(value, other))),
  );
}

const length = (text: string): number => [...text].length;

/** Equal as JSON values are: objects whatever the order of their fields. */
function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => isEqual(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const fields = Object.keys(one);
  return (
    fields.length === Object.keys(other).length &&
    fields.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]))
  );
}

/** Whether `value` is a multiple, in decimals: 0.3 is one of 0.1. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  return Number.isFinite(quotient) && Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient));
}

const KEYWORDS: Readonly<Record<string, Reader>> = {
  type: (given: unknown) => typeCheck(given),
  enum: (given: unknown) => {
    const all = list(given, "enum");
    return (value) => all.some((item) => isEqual(item, value));
  },
  const: (given: unknown) => (value) => isEqual(given, value),
  allOf: each("allOf", (checks) => (value) => checks.every((check) => check(value))),
  anyOf: each("anyOf", (checks) => (value) => checks.some((check) => check(value))),
  oneOf: each("oneOf", (checks) => (value) => checks.filter((check) => check(value)).length === 1),
  not: (given: unknown, _, read) => {
    const check = read(given);
    return (value) => !check(value);
  },
  if: conditional,
  minimum: limit("minimum", (least) => ofNumber((value) => value >= least)),
  maximum: limit("maximum", (most) => ofNumber((value) => value <= most)),
  exclusiveMinimum: limit("exclusiveMinimum", (bound) => ofNumber((value) => value > bound)),
  exclusiveMaximum: limit("exclusiveMaximum", (bound) => ofNumber((value) => value < bound)),
  multipleOf: limit("multipleOf", (of) => ofNumber((value) => isMultiple(value, of))),
  minLength: limit("minLength", (least) => ofString((value) => length(value) >= least)),
  maxLength: limit("maxLength", (most) => ofString((value) => length(value) <= most)),
  pattern: (given: unknown) => {
    const like = pattern(given);
    return ofString((value) => like.test(value));
  },
  minItems: limit("minItems", (least) => ofArray((value) => value.length >= least)),
  maxItems: limit("maxItems", (most) => ofArray((value) => value.length <= most)),
  uniqueItems: (given: unknown) =>
    ofArray((value) => !given || value.every((one, at) => !value.slice(0, at).some((other) => isEqual(one, other)))),
  prefixItems: each("prefixItems", (checks) =>
    ofArray((value) => checks.every((check, at) => at >= value.length || check(value[at]))),
  ),
  items,
  contains,
  minProperties: limit("minProperties", (least) => ofObject((value) => Object.keys(value).length >= least)),
  maxProperties: limit("maxProperties", (most) => ofObject((value) => Object.keys(value).length <= most)),
  required: (given: unknown) => {
    const all = names(given, "required");
    return ofObject((value) => all.every((name) => Object.hasOwn(value, name)));
  },
  properties,
  patternProperties: patterned,
  additionalProperties: additional,
  propertyNames: (given: unknown, _, read) => {
    const check = read(given);
    return ofObject((value) => Object.keys(value).every(check));
  },
  dependentSchemas: dependents,
  dependentRequired: dependentNames,
};
