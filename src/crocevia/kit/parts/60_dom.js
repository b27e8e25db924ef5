// ------------------------------------------------------------------------------------------------------------ DOM

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  send: "M12 20V5M5 11l7-7 7 7",
  stop: "M7 7h10v10H7z",
  attach: "M8 12.5l6.5-6.5a3.2 3.2 0 014.5 4.5L11 18.500a5 5 0 01-7-7L11.500 4",
  talk: "M12 4a3 3 0 00-3 3v5a3 3 0 006 0V7a3 3 0 00-3-3zM6 11.500a6 6 0 0012 0M12 17.500V21",
  read: "M4 10v4h3.500l4.500 4V6L7.500 10zM16 9a4 4 0 010 6M18.500 6.500a8 8 0 010 11",
  fresh: "M12 5v14M5 12h14",
  remove: "M7 7l10 10M17 7L7 17",
  down: "M12 5v14M6 13l6 6 6-6",
};

/** An element. Attributes are set one by one, children are nodes or texts: nothing is ever parsed. */
function element(tag, className, attributes, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const name of Object.keys(attributes || {})) if (attributes[name] !== null && attributes[name] !== undefined) made.setAttribute(name, attributes[name]);
  made.append(...children);
  return made;
}

function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "pc-icona");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

function build(tree) {
  return typeof tree === "string" ? tree : element(tree.t, tree.k, tree.a, ...(tree.c || []).map(build));
}

const hidden = (text) => element("span", "pc-nascosto", null, text);

