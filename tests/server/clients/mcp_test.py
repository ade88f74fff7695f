"""Tests `prism search --mcp` through PyPI's mcp client. Called as the other tests: mcp_test.py PRISM MODEL."""
import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PRISM = sys.argv[1]


async def use(folder, environment):
    parameters = StdioServerParameters(command=PRISM, args=["search", "--mcp", folder], env=environment)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.server_info.name == "prism", hello
        assert hello.capabilities.tools is not None, hello
        await session.send_ping()

        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"search", "index_status"}, tools
        assert tools["search"].input_schema["required"] == ["query"]

        # Before there is an index the error says what to do.
        missing = await session.call_tool("search", {"query": "owls"})
        assert missing.is_error and "prism index" in missing.content[0].text, missing

        (pathlib.Path(folder) / "night.md").write_text("# Birds\n\nOwls hunt at night.\n")
        (pathlib.Path(folder) / "day.py").write_text("def hunt_by_day():\n    return 'falcon'\n")
        subprocess.run([PRISM, "index", folder], check=True, env=environment, stdout=subprocess.DEVNULL)

        found = await session.call_tool("search", {"query": "which owls hunt?", "rank": "words", "n": 1})
        assert not found.is_error, found
        assert "night.md:1-3" in found.content[0].text, found
        result = found.structured_content["results"][0]
        assert result["line"] == 3 and result["kind"] == "text", result
        code = await session.call_tool("search", {"query": "hunt", "only": "code"})
        assert [pathlib.Path(each["path"]).name for each in code.structured_content["results"]] == ["day.py"], code
        none = await session.call_tool("search", {"query": "submarine", "rank": "words"})
        assert not none.is_error and none.structured_content["results"] == [], none

        status = await session.call_tool("index_status", {})
        assert status.structured_content["files"] == 2, status

        for arguments, part in (({}, "query"), ({"query": "x", "n": 0}, "n"), ({"query": "x", "colour": 1}, "colour"),
                                ({"query": "x", "rank": "best"}, "hybrid, vectors or words"), ({"query": " "}, "empty")):
            wrong = await session.call_tool("search", arguments)
            assert wrong.is_error and part in wrong.content[0].text, wrong
        try:
            await session.call_tool("no_such_tool", {})
            raise AssertionError("an unknown tool was called")
        except Exception as error:  # the client's own class differs between its versions
            assert "no_such_tool" in str(error), error


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "files")
        os.mkdir(folder)
        # Without pip the model is not fetched, and words are compared.
        environment = {"PATH": "/var/empty", "PRISM_CACHE_DIR": os.path.join(scratch, "cache"), "PRISM_BACKENDS": "cpu"}
        asyncio.run(use(folder, environment))
    print("mcp: right")


main()
