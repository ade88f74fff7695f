"""The server: started, asked and stopped."""
import json
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
