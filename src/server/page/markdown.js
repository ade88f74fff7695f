// Turns the text of a model into elements. Everything passes the sanitiser; HTML in the text is shown as text.
import { mathExtensions, renderMath } from "./math.js";
import { addCopyButtons } from "./code_blocks.js";
import { element } from "./dom.js";

const marked = globalThis.marked;
const purify = globalThis.DOMPurify;

const kTags = ["a", "b", "blockquote", "br", "code", "del", "details", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
               "kbd", "li", "mark", "ol", "p", "pre", "s", "span", "strong", "sub", "summary", "sup", "table", "tbody",
               "td", "th", "thead", "tr", "u", "ul"];
const kAttributes = ["align", "data-display", "data-language", "data-math", "href", "start", "title"];
const kPlainTags = /&lt;(\/?(?:b|br|details|i|kbd|mark|s|sub|summary|sup|u)) ?\/?&gt;/g;
const kOutside = /^(https?:\/\/|mailto:)/i;

export const escapeHtml = (text) =>
  text.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);

const renderer = {
  // Models use a few tags inside Markdown, such as <br> in tables; without attributes they are harmless.
  html: (html) => escapeHtml(html).replace(kPlainTags, "<$1>"),
  code: (code, language) =>
    `<pre><code data-language="${escapeHtml((language ?? "").split(/\s/)[0])}">${escapeHtml(code)}</code></pre>`,
  link: (href, title, text) =>
    kOutside.test(href ?? "") ? `<a href="${escapeHtml(href)}" title="${escapeHtml(title ?? href)}">${text}</a>` : text,
  // The page loads nothing from elsewhere, so a picture is a link to it.
  image: (href, title, text) => renderer.link(href, title, escapeHtml(text || title || "picture")),
  br: () => "<br>\n",  // with the line end of the text
  checkbox: (checked) => (checked ? "☑ " : "☐ "),
};

if (marked && purify) {
  // DOMPurify 2.4.1+deb12u1 of Debian reads a variable of this name that it does not declare, before it looks at any
  // element; without one it fails for every text. A depth of 0 makes that check pass; all others are intact.
  globalThis.shadowNode ??= { __depth: 0 };
  marked.use({ gfm: true, breaks: true, mangle: false, headerIds: false, renderer, extensions: mathExtensions });
  purify.addHook("afterSanitizeAttributes", (node) => {
    if (node.tagName !== "A") return;
    if (!kOutside.test(node.getAttribute("href") ?? "")) node.removeAttribute("href");
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  });
}

// Shows a text that grows: blocks that have not changed keep their elements, so that long answers stay quick.
export class MarkdownView {
  #blocks = [];  // { raw, nodes }: the Markdown of a block and what was made of it

  constructor(root) {
    this.root = root;
  }

  // Without the libraries, or if they fail, the text is shown as it is.
  show(text) {
    try {
      // marked sees an open code block only if a line end follows its last line; a growing answer often has none.
      if (marked && purify) return this.#showBlocks(marked.lexer(text.endsWith("\n") ? text : text + "\n"));
    } catch (thrown) {
      console.warn("Markdown is shown as plain text:", thrown);
    }
    this.#blocks = [];
    this.root.replaceChildren(element("div", { class: "plain" }, text));
  }

  #showBlocks(tokens) {
    // A definition of a link changes blocks before it.
    const isStable = Object.keys(tokens.links).length === 0;
    let same = 0;
    while (isStable && same < tokens.length && tokens[same].raw === this.#blocks[same]?.raw) ++same;
    if (same === 0) this.root.replaceChildren();
    for (const { nodes } of this.#blocks.splice(same)) for (const node of nodes) node.remove();
    for (const token of tokens.slice(same)) {
      const fragment = renderBlock(token);
      this.#blocks.push({ raw: token.raw, nodes: [...fragment.childNodes] });
      this.root.append(fragment);
    }
  }
}

function renderBlock(token) {
  const fragment = purify.sanitize(marked.parser([token]), {
    ALLOWED_TAGS: kTags, ALLOWED_ATTR: kAttributes, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true });
  renderMath(fragment);
  addCopyButtons(fragment);
  for (const table of fragment.querySelectorAll("table")) {
    const frame = element("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}
