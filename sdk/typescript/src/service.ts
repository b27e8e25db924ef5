/** What every service stands on. */
import type { Core } from "./core.js";

export class Service {
  /** @internal */
  protected readonly core!: Core;

  /** @internal */
  constructor(core: Core) {
    // Not enumerable: printing a service shows no settings.
    Object.defineProperty(this, "core", { value: core });
  }
}
