"""The server: started, asked and stopped."""
import json
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import prismrt as prism


def ask(url, body=None, key=None):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def test_serve(model_path, llm):
    with prism.serve(model_path, port=0, device="cpu", block=False) as server:
        assert server.url == f"http://127.0.0.1:{server.port}" and str(server.port) in repr(server)
        assert ask(server.url + "/v1/models")["data"][0]["id"] == "stories260K"
        body = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
        text = ask(server.url + "/v1/completions", body)["choices"][0]["text"]
    assert text == llm.generate("Once upon a time", max_tokens=8, temperature=0).text
    with pytest.raises(urllib.error.URLError):
        ask(server.url + "/v1/models")


def test_the_server_finds_the_package(model_path, tmp_path, monkeypatch):
    """As the parent did: not a folder of this name in the current one, and also outside the usual places."""
    (tmp_path / "prismrt").mkdir()
    (tmp_path / "prismrt" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "prismrt").symlink_to(pathlib.Path(prism.__file__).parent)
    monkeypatch.chdir(tmp_path)
    if sys.version_info >= (3, 11):  # before, Python cannot leave out the current folder
        with prism.serve(model_path, port=0, device="cpu", block=False) as server:
            assert ask(server.url + "/v1/models")["data"]
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "elsewhere")!r})
import prismrt as prism
with prism.serve({str(model_path)!r}, port=0, device="cpu", block=False) as server:
    print(prism.__file__, server.port > 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", timeout=120)
    assert result.stdout.split() == [str(tmp_path / "elsewhere" / "prismrt" / "__init__.py"), "True"], result.stderr


def test_keys(model_path):
    with prism.serve([model_path], port=0, api_keys=["secret"], device="cpu", block=False) as server:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(server.url + "/v1/models")
        assert ask(server.url + "/v1/models", key="secret")["data"]


def test_port_in_use(model_path):
    with prism.serve(model_path, port=0, device="cpu", block=False) as server:
        with pytest.raises(prism.Error, match=str(server.port)):
            prism.serve(model_path, port=server.port, device="cpu", block=False)
    for wrong, kind, message in (({"port": "a"}, TypeError, "port"), ({"parallel": 0}, ValueError, "parallel"),
                                 ({"model": 3}, TypeError, "model is 3"), ({"model": [3]}, TypeError, "model is 3")):
        with pytest.raises(kind, match=message):
            prism.serve(**wrong)
    with pytest.raises(prism.Error, match="absent"):
        prism.serve("absent.gguf", port=0, block=False)
