"""What the scripted model of the tests of the chat page answers, and its chat template."""
# With <think> in its text a template has reasoning.
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]{# <think> #}"
MARKDOWN = """# Energy

Mass and energy are **equal**: $E = mc^2$, and it costs $5 or $6.

| unit | value |
|:-----|------:|
| one<br>two | 2 |

$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$

Also \\(a < b\\) and
\\[ \\sqrt{2} \\]

```python
print("<b>hi</b>")
```

- [x] done
- see [the site](https://example.com/a?b=1&c=2)
"""
HOSTILE = """<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2">
<svg onload="window.hacked = 3"><a xlink:href="javascript:window.hacked=4">x</a></svg>
<iframe src="javascript:parent.hacked = 5"></iframe>
<style>body { display: none }</style> <b onclick="window.hacked=6" style="position:fixed">bold</b>
<details open ontoggle="window.hacked = 7"><summary>s</summary></details>

[link](javascript:window.hacked=8) [data](data:text/html,<script>window.hacked=9</script>)
[tab](java\tscript:window.hacked=10) [entity](javascript&colon;window.hacked=11) ![image](javascript:window.hacked=12)
[quote](https://example.com/"onmouseover="window.hacked=13) ![pixel](https://example.com/leak.png)
<https://example.com/auto> javascript:window.hacked=14

$\\href{javascript:window.hacked=15}{x}$ $\\url{javascript:window.hacked=16}$ $\\includegraphics{https://example.com/x.png}$
$\\htmlStyle{position:fixed}{x}$ $\\htmlData{x=1}{y}$ $</span><img src=x onerror=window.hacked=17>$
$\\def\\a{\\a\\a}\\a$ $$\\rule{9999em}{9999em}$$

```html" onmouseover="window.hacked=18
</code></pre><script>window.hacked = 19</script>
```
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.hacked=20&gt;">
the end"""
ANSWERS = {
    "say:hello": {"text": "Hello, this is answer {number}. Nice to meet you."},
    "say:markdown": {"text": MARKDOWN},
    "say:hostile": {"text": HOSTILE},
    "say:think": {"text": "<think>\nTwo and two.\nThat is <b>four</b>.\n</think>\n\nIt is four."},
    "say:code": {"text": "Look:\n\n```python\nfirst()\nsecond()"},
    "say:poem": {"text": "Rain falls,\n*the roof sings*\nall night."},
    "say:table": {"text": "| Left | Centre | Right | A very long heading that needs all of the room | Another one |\n"
                          "|:--|:-:|--:|---|---|\n| a | b | 1 | words that go on and on | x |\n"},
    "say:links": {"text": "The [first][1] block.\n\nThe second block.\n\n[1]: https://example.com/late\n"},
    "say:endless": {"text": "words without an end, ", "repeats": True},
    "say:read": {"text": "I have read it all.", "reading_steps": 1000},
    "say:prompt": {"text": "I got {options}:\n\n{prompt}"},
    "say:fail": {"text": "The first half of it", "fails": "the device is gone"},
}
