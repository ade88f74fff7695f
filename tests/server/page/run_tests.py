"""Tests the chat page of `prism serve` in a real browser. Run by scripts/test_page.sh, which makes a virtual environment.

usage: run_tests.py BUILD_FOLDER MODEL [TEST...]   (TEST: content_test, content_test.Content.test_markdown ...)"""
import shutil
import sys
import unittest
from pathlib import Path

import page_case

names = sys.argv[3:] or sorted(each.stem for each in Path(__file__).parent.glob("*_test.py"))
try:
    unittest.main(module=None, argv=[sys.argv[0], *names])
finally:
    page_case.DRIVER.quit()
    shutil.rmtree(page_case.FOLDER)
