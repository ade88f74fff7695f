"""The base of the tests of the chat page: servers with scripted answers, and a browser that all tests share."""
import atexit
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from browser import Page, start_browser, start_server
from scripted_texts import ANSWERS, TEMPLATE

BUILD, MODEL = Path(sys.argv[1]), sys.argv[2]
FOLDER = Path(tempfile.mkdtemp(prefix="prism-page-"))  # for files that are attached, exported and imported


def serve(**more):
    server, address = start_server(BUILD / "page_server", MODEL, {"chat_template": TEMPLATE, "answers": ANSWERS, **more})
    atexit.register(stop, server)
    return server, address


def stop(server):
    server.kill()
    server.wait()
    server.stdout.close()


def get(address, headers=None):
    """The status, headers and body of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {})) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as reply:
        return reply.code, reply.headers, reply.read()


def prism_serve(*flags):
    return subprocess.Popen([BUILD / "prism", "serve", MODEL, "--port", "0", "--device", "cpu", "--quiet", *flags],
                            stdout=subprocess.PIPE, text=True)


_, ADDRESS = serve()
DRIVER = start_browser(FOLDER)


class PageTest(unittest.TestCase):
    maxDiff = None
    complains = False  # set by tests in which the browser may report failed requests

    def setUp(self):
        self.page = Page(DRIVER, ADDRESS)
        self.page.open()
        self.page.console()
        self.page.requested()

    def tearDown(self):
        for url in self.page.requested():
            self.assertRegex(url, f"^({self.page.address}/|blob:{self.page.address}/|about:blank)")
        if not self.complains:
            self.assertEqual(self.page.console(), [])
        self.page.emulate()
