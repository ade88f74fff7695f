"""What answers look like, and that they never run as script."""
import re

from page_case import ADDRESS, FOLDER, PageTest


class Content(PageTest):
    def test_markdown(self):
        self.page.ask("say:markdown")
        content = ".message.assistant .content"
        self.assertEqual(self.page.text(content + " h1"), "Energy")
        self.assertEqual(self.page.text(content + " strong"), "equal")
        self.assertIn("it costs $5 or $6.", self.page.text(content))
        self.assertEqual(self.page.script("return [...document.querySelectorAll('td')].map(e => e.innerText)"),
                         ["one\ntwo", "2"])
        self.assertEqual(self.page.one("td:last-child").value_of_css_property("text-align"), "-webkit-right")
        self.assertEqual(self.page.text(content + " pre code"), 'print("<b>hi</b>")')
        self.assertEqual(self.page.text(".code-top span"), "python")
        self.assertIn("☑ done", self.page.text(content))
        link = self.page.one(content + " a")
        self.assertEqual(link.get_attribute("href"), "https://example.com/a?b=1&c=2")
        self.assertEqual(link.get_attribute("rel"), "noopener noreferrer nofollow")
        self.assertEqual(link.get_attribute("target"), "_blank")

    def test_the_reading_of_a_long_prompt_is_shown(self):
        self.page.write("say:read")
        self.page.until(lambda: re.fullmatch(r"Reading 4,000 tokens: [1-9]\d?%", self.page.text(".reading") or ""),
                        "how much was read")
        value = float(self.page.one(".reading progress").get_attribute("value"))
        self.assertTrue(0.05 < value < 1, value)
        self.assertIn("I have read it all.", self.page.answer())
        self.assertEqual(self.page.all(".reading"), [])
        self.page.ask("say:hello")
        self.assertEqual(self.page.all(".reading"), [])

    def test_code_is_shown_before_it_ends(self):
        self.page.ask("say:code")
        self.assertEqual(self.page.text(".content pre code"), "first()\nsecond()")
        self.assertEqual(self.page.text(".content p"), "Look:")

    def test_lines_stay_lines(self):
        self.page.ask("say:poem")
        self.assertEqual(self.page.one(".message.assistant .content").text, "Rain falls,\nthe roof sings\nall night.")

    def test_tables_keep_their_words_whole(self):
        self.page.emulate(width=390, height=844)
        self.page.ask("say:table")
        for column in range(1, 4):
            lines = self.page.script(
                "const range = document.createRange(); range.selectNodeContents(document.querySelector(arguments[0]));"
                "return new Set([...range.getClientRects()].map(each => each.top)).size", f"th:nth-child({column})")
            self.assertEqual(lines, 1, column)
        self.assertLessEqual(self.page.script("return document.documentElement.scrollWidth"), 390)

    def test_a_block_follows_what_comes_after_it(self):
        self.page.ask("say:links")
        self.assertEqual(self.page.one(".content a").get_attribute("href"), "https://example.com/late")
        self.assertEqual(self.page.script("return [...document.querySelectorAll('.content p')].map(e => e.textContent)"),
                         ["The first block.", "The second block."])

    def test_math_has_its_styles_and_fonts(self):
        self.page.ask("say:markdown")
        self.assertEqual(len(self.page.all(".katex")), 4)
        self.assertEqual(len(self.page.all("[data-display] .katex-display")), 2)
        self.assertIn("KaTeX_Main", self.page.one(".katex").value_of_css_property("font-family"))
        # A fraction has places that KaTeX sets by style.
        self.assertGreater(self.page.script("return [...document.querySelectorAll('.katex [style]')].length"), 5)
        self.page.until(lambda: self.page.script("return document.fonts.check('16px KaTeX_Main')"), "the font")

    def test_code_is_copied(self):
        self.page.driver.execute_cdp_cmd("Browser.grantPermissions", {
            "origin": ADDRESS, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.page.ask("say:markdown")
        self.page.click("[aria-label='Copy the code']")
        self.page.until(lambda: self.page.text("#status") == "Copied", "the copy")
        self.assertEqual(self.page.driver.execute_async_script(
            "navigator.clipboard.readText().then(arguments[0], arguments[0])"), 'print("<b>hi</b>")')

    def test_hostile_text_never_runs(self):
        self.page.ask("say:hostile")
        self.page.until(lambda: "the end" in self.page.text(".message.assistant .content"), "the whole text")
        self.check_harmless()
        self.page.reload()
        self.page.until(lambda: "the end" in (self.page.text(".message.assistant .content") or ""), "the whole text")
        self.check_harmless()
        for element in self.page.all(".content a, .content b, .content summary, .content .katex, .content code"):
            if element.is_displayed():
                self.page.script("for (const kind of ['mouseover', 'click', 'toggle', 'error', 'load']) {"
                                 "  const event = new Event(kind, {bubbles: true, cancelable: true});"
                                 "  event.preventDefault(); arguments[0].dispatchEvent(event); }", element)
        self.check_harmless()

    def check_harmless(self):
        self.assertIsNone(self.page.script("return window.hacked ?? null"))
        content = "document.querySelector('.message.assistant .content')"
        self.assertEqual(self.page.script(
            f"return [...{content}.querySelectorAll('*')].flatMap(e => [...e.attributes]"
            ".filter(a => a.name.startsWith('on') || /javascript:|data:/i.test(a.value) && a.name != 'data-math'"
            " || a.name == 'src').map(a => e.outerHTML))"), [])
        self.assertEqual(self.page.script(
            f"return [...{content}.querySelectorAll('script, img, iframe, style, svg a, object, form, input')]"
            ".map(e => e.outerHTML)"), [])
        self.assertEqual(self.page.script(
            f"return [...{content}.querySelectorAll('a')].filter(e => !(e.rel.includes('noopener') && e.target == '_blank'"
            " && /^https:/.test(e.href))).map(e => e.outerHTML)"), [])
        self.assertEqual(self.page.script(
            f"return [...{content}.querySelectorAll(':not(.katex, .katex *)[style]')].map(e => e.outerHTML)"), [])

    def test_the_policy_refuses_scripts(self):
        self.complains = True
        self.page.script("const s = document.createElement('div'); document.body.append(s);"
                         "try { s.innerHTML = '<img src=x onerror=\"window.hacked = 1\">'; } catch (e) { window.refused = 1; }")
        self.assertEqual(self.page.script("return window.refused"), 1, "Trusted Types")
        self.page.script("const s = document.createElement('button'); s.setAttribute('style', 'color: red');"
                         "try { s.setAttribute('onclick', 'window.hacked = 1'); } catch (e) {} s.click()")
        self.assertIsNone(self.page.script("return window.hacked ?? null"))
        self.assertTrue(any("Content Security Policy" in line for line in self.page.console()))

    def test_thinking_is_folded(self):
        self.assertEqual(self.page.ask("say:think"), "It is four.")
        self.assertFalse(self.page.one(".thoughts").is_displayed())
        self.assertRegex(self.page.text(".thinking summary"), r"^Thought")
        self.page.click(".thinking summary")
        self.page.until(lambda: self.page.one(".thoughts").is_displayed(), "the thoughts")
        self.assertEqual(self.page.text(".thoughts"), "Two and two.\nThat is <b>four</b>.")
        self.assertNotIn("Two and two", self.page.ask("say:prompt"))

    def test_attachments(self):
        file = FOLDER / "notes.txt"
        file.write_text("First ```\nlätzte Zeile")
        self.page.one("#attach-file").send_keys(str(file))
        self.page.visible(".chip")
        self.page.click("[aria-label='Remove notes.txt']")
        self.page.until(lambda: not self.page.all(".chip"), "no file")
        self.page.one("#attach-file").send_keys(str(file))
        self.page.visible(".chip")
        prompt = self.page.ask("say:prompt")
        self.assertFalse(self.page.all(".chip"))
        self.assertIn("notes.txt", self.page.text(".attachment summary"))
        self.assertIn("File notes.txt:", prompt)
        self.assertIn("lätzte Zeile", prompt)
        self.page.script("const files = new DataTransfer(); files.items.add(new File(['dropped'], 'drop.txt'));"
                         "document.dispatchEvent(new DragEvent('drop', {dataTransfer: files}))")
        self.page.until(lambda: self.page.text(".chip-name") == "drop.txt", "the dropped file")
        self.page.click("[aria-label='Remove drop.txt']")
        (FOLDER / "picture.png").write_bytes(b"\x89PNG\r\n\xff\xfe\0")
        self.page.one("#attach-file").send_keys(str(FOLDER / "picture.png"))
        self.page.until(lambda: "picture.png is no text file" in (self.page.text("#banner") or ""), "the refusal")
        self.assertFalse(self.page.all(".chip"))
