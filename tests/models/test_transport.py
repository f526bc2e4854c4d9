"""Certificates, proxies and redirects: what leaves this machine, and where to."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from endpoint_help import ask, call, http_model
from strict_server import KEY, Fault, StrictServer

from robustjudge.errors import ConfigError


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1 and a server context that uses it."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command here to make a test certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


def complete(model: Any) -> Any:
    return ask(model, lambda m: m.complete(call()))


def test_an_extra_authority_is_trusted(certificate: tuple[Path, ssl.SSLContext]) -> None:
    cert, context = certificate
    with StrictServer(tls=context) as server:
        assert complete(http_model(server.url, ca=str(cert))).status == "ok"


def test_an_unknown_authority_is_refused_once_and_the_key_stays_here(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    _, context = certificate
    with StrictServer(tls=context) as server:
        done = complete(http_model(server.url))
        assert not server.requests
    assert (done.status, done.reason, done.attempts) == ("error", "certificate", 1)


def test_an_unusable_authority_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        complete(http_model("https://127.0.0.1:9/v1", ca=str(tmp_path / "nowhere.pem")))


def test_a_redirect_to_another_host_is_not_followed_with_the_key() -> None:
    with StrictServer() as other:
        target = f"{other.url}/chat/completions"
        for status in (301, 302, 303, 307, 308):
            with StrictServer(Fault("status", status, headers={"Location": target})) as server:
                done = complete(http_model(server.url))
            assert (done.status, done.reason, done.attempts) == ("error", "redirect", 1)
        assert not other.requests


def test_a_redirect_on_the_same_host_is_followed_once() -> None:
    with StrictServer(Fault("status", 307, headers={"Location": "/v1/chat/completions?v=2"})) as server:
        done = complete(http_model(server.url))
        assert [r.query for r in server.requests] == [{}, {"v": "2"}]
        assert server.requests[1].headers["Authorization"] == f"Bearer {KEY}"
    assert done.status == "ok"


def test_requests_go_through_the_proxy_and_its_password_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_PW", "proxy-pass-word")
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> Any:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = http_model("http://models.invalid/v1", proxy=f"http://me:${{PROXY_PW}}@127.0.0.1:{port}")
        try:
            return await model.complete(call()), model
        finally:
            await model.close()
            server.close()

    done, model = asyncio.run(main())
    assert seen[0].startswith(b"POST http://models.invalid/v1/chat/completions HTTP/1.1")
    assert b"Proxy-Authorization: Basic" in seen[0]
    assert done.reason == "http_403" and "proxy-pass-word" not in repr(done) + repr(model.settings) + model.identity


def test_proxy_variables_of_the_environment_are_not_used_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with StrictServer() as server:
        assert complete(http_model(server.url)).status == "ok"


def test_an_oversized_body_is_an_error_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustjudge.models.wire.MAX_BODY", 1000)
    with StrictServer(Fault("raw", body=b" " * 2000)) as server:
        done = complete(http_model(server.url))
        assert len(server.requests) == 1
    assert (done.status, done.reason) == ("error", "body_too_large")
