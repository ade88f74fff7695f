// Mathematics in Markdown: $...$, $$...$$, \(...\) and \[...\], set by KaTeX.
const katex = globalThis.katex;

const escapeAttribute = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

// A rule finds TeX at the beginning of the text that is left.
function extension(name, level, start, rule, isDisplay) {
  return {
    name, level,
    start: (text) => text.search(start),
    tokenizer(text) {
      const found = rule.exec(text);
      return found ? { type: name, raw: found[0], tex: found[1] } : undefined;
    },
    renderer: ({ tex, raw }) =>
      `<span data-math="${escapeAttribute(tex)}"${isDisplay ? ' data-display="true"' : ""}>${escapeAttribute(raw)}</span>` +
      (level === "block" ? "\n" : ""),
  };
}

// A single dollar is often money: TeX touches both of its dollars, and no digit follows.
const kInlineDollar = /^\$(?![\s$])((?:\\.|[^\\$\n])*?)(?<!\s)\$(?!\d)/;

export const mathExtensions = [
  extension("mathBlock", "block", /\$\$/, /^ {0,3}\$\$((?:\\[^]|[^\\$])+?)\$\$[ \t]*(?:\n|$)/, true),
  extension("mathBracketBlock", "block", /\\\[/, /^ {0,3}\\\[([^]+?)\\\][ \t]*(?:\n|$)/, true),
  extension("mathDisplay", "inline", /\$\$/, /^\$\$((?:\\[^]|[^\\$])+?)\$\$/, true),
  extension("mathBracket", "inline", /\\\[/, /^\\\[([^]+?)\\\]/, true),
  extension("mathParenthesis", "inline", /\\\(/, /^\\\(([^]+?)\\\)/, false),
  extension("mathDollar", "inline", /\$/, kInlineDollar, false),
];

// Sets the TeX of the sanitised elements. KaTeX builds elements itself, and without trust its commands can neither link
// nor load anything.
export function renderMath(root) {
  if (!katex) return;  // the TeX stays
  for (const span of root.querySelectorAll("span[data-math]")) {
    const source = span.textContent;
    try {
      katex.render(span.dataset.math, span, { displayMode: span.dataset.display === "true", throwOnError: true,
                                              trust: false, strict: "ignore", maxSize: 10, maxExpand: 500 });
    } catch (thrown) {
      span.textContent = source;
      span.title = thrown.message;
    }
  }
}
