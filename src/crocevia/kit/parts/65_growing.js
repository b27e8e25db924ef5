// ----------------------------------------------------------------------------------------------- a text that grows

const BUDGET = 12; // milliseconds of drawing in one frame
const WINDOW = 20000; // characters looked at in one frame
const GROUP = 40; // blocks that are laid out together: a browser lays out again what stands beside a change

/** Where a block that joins this one goes, if not below it. */
const TAILS = {
  code: (node) => node,
  table: (node) => node.firstElementChild,
  list: (node) => (node.tagName === "DIV" ? node.lastElementChild : node).lastElementChild,
};

/** What can no longer change is drawn once; only the last block is drawn again. */
class TextView {
  constructor(say, words) {
    this.node = element("div", "pc-testo");
    this.group = null;
    this.count = 0; // blocks in the group that are there to stay
    this.say = say;
    this.words = words;
    this.read = 0;
    this.goes = null;
    this.tail = null;
    this.window = WINDOW;
    this.loose = [];
    this.told = 0;
    this.state = null;
  }

  /** Draw until `deadline`; whether all is drawn. ended: nothing will be added. */
  update(text, ended, deadline) {
    if (this.state && this.state.text === text && this.state.ended === ended) return true;
    const seen = text.slice(this.read, this.read + this.window);
    const last = this.read + seen.length === text.length;
    const { blocks, stable, goes } = splitBlocks(seen, this.goes);
    const firm = blocks.filter((block) => block.firm);
    if (firm.length || last) this.clear();
    for (let index = 0; index < firm.length; index += 1) {
      if (index && performance.now() > deadline) {
        this.read += firm[index].start;
        this.goes = firm[index].goes;
        return false;
      }
      this.keep(firm[index]);
    }
    this.read += stable;
    this.goes = goes;
    if (!last) {
      if (!firm.length) this.window *= 2;
      return false;
    }
    this.window = WINDOW;
    for (const block of blocks.slice(firm.length)) {
      this.loose.push(this.draw(block, !ended));
      this.tell(block, ended);
    }
    if (ended) this.told = Infinity;
    this.state = { text, ended };
    return true;
  }

  clear() {
    for (const old of this.loose) old.remove();
    this.loose = [];
  }

  keep(block) {
    const node = this.draw(block, false);
    if (!block.joins) this.tail = block.kind in TAILS ? TAILS[block.kind](node) : null;
    this.count += block.joins && this.tail ? 0 : 1;
    this.tell(block, true);
    this.told = 0;
  }

  draw(block, open) {
    block.tree = blockTree(block, open);
    const node = build(block.tree);
    (block.joins && this.tail ? this.tail : this.groupFor(block)).append(node);
    return node;
  }

  groupFor(block) {
    // The parts of one long list stay together: they stand closer than other blocks do.
    if (!this.group || (this.count >= GROUP && block.kind !== "list")) {
      this.group = element("div", "pc-brano");
      this.count = 0;
      this.node.append(this.group);
    }
    return this.group;
  }

  /** Whole sentences only, each once. */
  tell(block, whole) {
    const found = block.kind === "code" ? (block.joins ? [] : [this.words("code")]) : sentences(plainText(block.tree));
    const count = whole ? found.length : found.length - 1;
    for (; this.told < count; this.told += 1) this.say(found[this.told]);
  }
}

