// --------------------------------------------------------------------------------------- what a page chooses

const SCRIPT = typeof document === "object" && document.currentScript ? document.currentScript.src : "";
const SWITCHES = { allegati: false, lettura: false, microfono: false, conferme: false, nuova: false, novita: true };
const POINTLESS = new Set([
  "richiesta_non_valida", "non_autorizzato", "agente_non_abilitato", "documenti_non_abilitati", "immagini_non_abilitate",
  "metodo_non_valido", "richiesta_troppo_grande", "richiesta_rifiutata",
]);

const newId = () => {
  // randomUUID is there on secure pages only; a chat on http in one's own network needs an id too.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
};

function chosenSwitches(options) {
  const given = options.funzioni || {};
  for (const name of Object.keys(given)) if (!(name in SWITCHES)) console.warn("PepperChat: funzioni." + name + " does not exist");
  const chosen = Object.assign({}, SWITCHES);
  for (const name of Object.keys(SWITCHES)) if (given[name] !== undefined) chosen[name] = given[name] === true;
  if (given.nuova === undefined && options.nuova) chosen.nuova = true;
  return chosen;
}

/** The address of kit.php: given, or that of this very script. A copied script has no server to ask. */
function kitAddress(options) {
  const given = options.server ? String(options.server).replace(/\/$/, "") : null;
  if (given) return /kit\.php$/.test(given) ? given : given + "/kit.php";
  const own = SCRIPT.split(/[?#]/)[0];
  return /\/kit\.php$/.test(own) ? own : null;
}

const remembered = {
  get(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // a page may be denied its storage
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(key, value);
    } catch {
      // then the novelty is told again
    }
  },
};

