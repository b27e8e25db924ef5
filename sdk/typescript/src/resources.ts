/** Resources as the server sent them: checked against their model, fields that a newer server adds kept. */
import { InvalidResponseError } from "./errors.js";
import { MODELS } from "./generated/shapes.js";
import { inspect, redacted } from "./secrets.js";

/** A resource as the server sent it. Printing one shows ids, states and numbers, and of texts only their length. */
export interface Resource {
  /** The fields that this version of the SDK does not know. */
  readonly extra: Readonly<Record<string, unknown>>;
}

type Check = (value: unknown, path: string) => unknown;
interface Field {
  check: Check;
  required: boolean;
}

const plans = new Map<string, { fields: Map<string, Field>; make: (raw: object) => object }>();

/** @internal */
export const MOMENT =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

class Mismatch extends Error {}

const ATOMS: Readonly<Record<string, [string, (value: unknown) => boolean]>> = {
  s: ["a string", (value) => typeof value === "string"],
  i: ["an integer", Number.isInteger],
  f: ["a number", (value) => typeof value === "number"],
  b: ["a boolean", (value) => typeof value === "boolean"],
  d: ["a time", (value) => typeof value === "string" && MOMENT.test(value)],
  m: ["an object", isObject],
  n: ["null", (value) => value === null],
  "*": ["anything", () => true],
};

/** @internal */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @internal Check parsed JSON against `kind` ("Model" or "[Model"); throws InvalidResponseError with the original kept. */
export function decode(kind: string | undefined, raw: unknown): unknown {
  if (kind === undefined) return raw;
  try {
    return checkOf(kind.startsWith("[") ? `[@${kind.slice(1)}` : `@${kind}`)(raw, "$");
  } catch (problem) {
    if (problem instanceof Mismatch) throw new InvalidResponseError(problem.message, { raw });
    throw problem;
  }
}

function checkOf(shape: string): Check {
  const options = shape.split("|");
  if (options.length > 1) return union(options.map(checkOf));
  if (shape.startsWith("[")) return listOf(checkOf(shape.slice(1)));
  if (shape.startsWith("@")) return (value, path) => model(shape.slice(1), value, path);
  const [name, holds] = ATOMS[shape]!;
  return (value, path) => {
    if (!holds(value)) throw new Mismatch(`expected ${name} at ${path}`);
    return value;
  };
}

function union(checks: Check[]): Check {
  return (value, path) => {
    let first: unknown;
    for (const check of checks) {
      try {
        return check(value, path);
      } catch (problem) {
        first ??= problem;
      }
    }
    throw first;
  };
}

function listOf(check: Check): Check {
  return (value, path) => {
    if (!Array.isArray(value)) throw new Mismatch(`expected a list at ${path}`);
    return value.map((item, at) => check(item, `${path}[${at}]`));
  };
}

function model(name: string, value: unknown, path: string): object {
  if (!isObject(value)) throw new Mismatch(`expected an object at ${path}`);
  const { fields, make } = planOf(name);
  const out = make(value) as Record<string, unknown>;
  for (const [field, { check, required }] of fields) {
    const item = value[field];
    if (item === undefined || (item === null && !required)) {
      if (required) throw new Mismatch(`missing ${field} at ${path}`);
    } else {
      out[field] = check(item, `${path}.${field}`);
    }
  }
  return out;
}

function planOf(name: string): { fields: Map<string, Field>; make: (raw: object) => object } {
  const known = plans.get(name);
  if (known !== undefined) return known;
  const fields = new Map<string, Field>();
  for (const spec of MODELS[name]!.split(" ")) {
    const [, field, optional, shape] = /^(\w+)(\??):(.*)$/.exec(spec)!;
    fields.set(field!, { check: checkOf(shape!), required: optional === "" });
  }
  const prototype = Object.create(Object.prototype, {
    extra: {
      get(this: object): object {
        return Object.fromEntries(Object.entries(this).filter(([field]) => !fields.has(field)));
      },
    },
    [inspect]: {
      value(this: object): string {
        return redacted(name, this);
      },
    },
  }) as object;
  // Defined and not assigned: a field called `__proto__` is a field.
  const make = (raw: object): object =>
    Object.create(prototype, Object.getOwnPropertyDescriptors(raw) as PropertyDescriptorMap) as object;
  const plan = { fields, make };
  plans.set(name, plan);
  return plan;
}
