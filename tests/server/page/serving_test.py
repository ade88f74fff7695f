"""How the page is served, and the real program."""
import gzip
import unittest

from browser import Page
from page_case import ADDRESS, DRIVER, get, prism_serve


class Serving(unittest.TestCase):
    def test_files_and_headers(self):
        status, headers, body = get(ADDRESS + "/")
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(headers["content-encoding"], "gzip")
        html = gzip.decompress(body).decode()
        self.assertIn("<title>Prism</title>", html)
        self.assertNotRegex(html, r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?://")
        policy = headers["content-security-policy"]
        self.assertIn("default-src 'none'; script-src 'self'; style-src 'self';", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(get(ADDRESS + "/", {"if-none-match": headers["etag"]})[0], 304)
        self.assertEqual(get(ADDRESS + "/", {"if-none-match": '"other"'})[0], 200)
        self.assertEqual(get(ADDRESS + "/page/nothing.js")[0], 404)
        self.assertEqual(get(ADDRESS + "/page/../page/main.js")[0], 404)
        licences = gzip.decompress(get(ADDRESS + "/page/licences.txt")[2]).decode()
        for each in ["libjs-marked", "node-dompurify", "libjs-katex", "fonts-katex", "Expat", "Apache-2.0"]:
            self.assertIn(each, licences)

    def test_prism_serve_prints_the_address(self):
        for flags, status in [([], 200), (["--no-page"], 404)]:
            with prism_serve(*flags) as server:
                address = server.stdout.readline().rsplit(" ", 1)[1].strip()
                if status == 200:
                    self.assertEqual(server.stdout.readline(), f"chat page: {address}/\n")
                self.assertEqual(get(address + "/")[0], status)
                self.assertEqual(get(address + "/page/main.js")[0], status)
                server.terminate()

    def test_the_real_model_answers(self):
        with prism_serve("--context", "512") as server:
            page = Page(DRIVER, server.stdout.readline().rsplit(" ", 1)[1].strip())
            page.open()
            page.click("#open-settings")
            page.visible("[data-setting=max_tokens]").send_keys("20")
            page.close("#settings")
            self.assertGreater(len(page.ask("Once upon a time")), 10)
            self.assertRegex(page.text(".figures"), r"^20 tokens · [\d.,]+ tokens/s · first after ")
            self.assertIn("Cut at the most tokens", page.text(".note"))
            page.click("#toggle-panel")
            page.until(lambda: "Layers\n5 of 5" in page.one("#facts").text, "the placement")
            server.terminate()
