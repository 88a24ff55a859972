"""What do real sockets do to a call?

Each test serves one connection from a thread, on this machine, and breaks it in its own way.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from contextlib import contextmanager

import httpx
import httpx2
import pytest

from breakwater.domain.signals import ErrorClass, TransportFailure
from breakwater.providers import transport
from breakwater.providers.registry import build
from tests.providers.wire import KEY, call

CASES = [("openai", "responses"), ("anthropic", "messages")]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_1\r\n"


@contextmanager
def server(behave):
    """A server for one connection, and the number of connections it got."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    connections: list[int] = []

    def serve():
        try:
            while True:
                connection, _ = listener.accept()
                connections.append(1)
                with connection:
                    connection.settimeout(10)
                    connection.recv(65_536)
                    behave(connection)
        except OSError:
            return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", connections
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def submit(case, url, timeout_ms=5_000):
    """One call to this server."""
    adapter = build(*case, url, KEY, "r", timeout_ms)
    return adapter.submit(call(timeout_ms=timeout_ms))


@pytest.mark.parametrize("case", CASES)
def test_a_refused_connection_was_not_sent(case):
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    assert submit(case, url).signal.error_class is ErrorClass.NOT_SENT


@pytest.mark.parametrize("case", CASES)
def test_a_failed_handshake_was_not_sent(case):
    """The other side doesn't speak TLS."""
    with server(lambda connection: connection.sendall(b"hello\r\n")) as (url, _):
        outcome = submit(case, url.replace("http://", "https://"))

    assert outcome.signal.error_class is ErrorClass.NOT_SENT


@pytest.mark.parametrize("case", CASES)
def test_a_connection_that_ends_without_an_answer_has_an_unknown_outcome(case):
    """The request was read, then nothing came."""
    with server(lambda connection: connection.close()) as (url, connections):
        outcome = submit(case, url)

    assert outcome.signal.error_class is ErrorClass.OUTCOME_UNKNOWN
    assert len(connections) == 1


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("status", [b"200 OK", b"503 Busy"])
def test_an_answer_that_is_cut_has_an_unknown_outcome(case, status):
    """Its length was promised and not kept; also when it was to be an error."""
    head = OK.replace(b"200 OK", status) + b'Content-Length: 500\r\n\r\n{"id":'

    with server(lambda connection: connection.sendall(head)) as (url, _):
        outcome = submit(case, url)

    assert outcome.signal.rule == "default.answer_lost"


@pytest.mark.parametrize("case", CASES)
def test_what_was_known_before_the_cut_is_kept(case):
    """The provider's request id is what its support asks for."""
    head = OK + b'Content-Length: 500\r\n\r\n{"id":'

    with server(lambda connection: connection.sendall(head)) as (url, _):
        signal = submit(case, url).signal

    assert (signal.http_status, signal.provider_request_id) == (200, "req_1")


@pytest.mark.parametrize("case", CASES)
def test_an_answer_that_is_no_http_has_an_unknown_outcome(case):
    """Something else sits on that port."""
    with server(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH\r\n")) as (url, _):
        assert submit(case, url).signal.rule == "default.answer_lost"


@pytest.mark.parametrize("case", CASES)
def test_an_answer_that_does_not_unpack_has_an_unknown_outcome(case):
    """Its encoding is broken, and so it is lost."""
    body = gzip.compress(b"{}")[:8] + b"junk"
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"

    with server(lambda connection: connection.sendall(head + body)) as (url, _):
        assert submit(case, url).signal.rule == "default.answer_lost"


@pytest.mark.parametrize("case", CASES)
def test_silence_ends_at_the_time_out(case):
    """A hung provider costs the time it was given, and no more."""
    with server(lambda _: time.sleep(1)) as (url, _):
        began = time.monotonic()
        outcome = submit(case, url, timeout_ms=300)

    assert outcome.signal.error_class is ErrorClass.OUTCOME_UNKNOWN
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("case", CASES)
def test_blanks_that_keep_a_connection_alive_do_not_prolong_the_call(case):
    """Each read is in time, all together are not."""

    def drip(connection):
        connection.sendall(OK + b"Content-Length: 500\r\n\r\n")
        for _ in range(20):
            time.sleep(0.1)
            connection.sendall(b" ")

    with server(drip) as (url, _):
        began = time.monotonic()
        outcome = submit(case, url, timeout_ms=500)
        took = time.monotonic() - began

    assert outcome.signal.rule == "default.answer_lost"
    assert took < 1.2


@pytest.mark.parametrize("case", CASES)
def test_no_connection_outlives_its_call(case):
    """One that died while a function was frozen would look like a lost answer."""
    head = OK + b"Content-Length: 2\r\n\r\n{}"
    with server(lambda connection: connection.sendall(head)) as (url, connections):
        adapter = build(*case, url, KEY, "r", 5_000)
        for _ in range(3):
            adapter.submit(call())

    assert len(connections) == 3


def chained(outer, *causes):
    """An exception that was raised from others."""
    error = outer
    for cause in causes:
        error.__cause__ = cause
        error = cause
    return outer


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize(
    ("cause", "failure"),
    [
        (socket.gaierror("no such host"), TransportFailure.DNS),
        (ssl.SSLCertVerificationError("expired"), TransportFailure.TLS),
        (ConnectionRefusedError(), TransportFailure.CONNECT),
    ],
)
def test_why_a_connection_failed_is_found_in_its_causes(library, cause, failure):
    """The library says that it failed, the system why."""
    inner = chained(OSError("inner"), cause)

    assert transport.transport_failure(chained(library.ConnectError("x"), inner)) is failure
    assert (
        transport.transport_failure(chained(RuntimeError("sdk"), library.ConnectError("x"))) is TransportFailure.CONNECT
    )


def test_an_unknown_failure_may_have_been_sent():
    """The careful reading where nothing is known, also of exceptions that go round in a circle."""
    error = RuntimeError("?")
    error.__context__ = OSError("!")
    error.__context__.__context__ = error

    assert transport.transport_failure(error) is TransportFailure.READ


def test_a_body_without_end_is_not_read_to_its_end(monkeypatch):
    """Nothing a provider sends is that large."""
    monkeypatch.setattr(transport, "_LARGEST_BODY", 10)

    with pytest.raises(transport.BodyTooLarge):
        transport.collect([b"123456", b"123456"], time.monotonic() + 5)


def test_bodies_are_json_where_they_read_as_json():
    """Whatever the content type says; numbers and nesting beyond reading are text."""
    assert transport.parsed(b'{"a": 1}') == {"a": 1}
    assert transport.parsed(b" \n") is None
    assert transport.parsed(b"<html>") == "<html>"
    assert transport.parsed(b"9" * 5_000) == "9" * 5_000
    assert transport.parsed(b"\xff") == "\ufffd"
