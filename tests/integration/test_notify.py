"""Notifications over real sockets: signed, pinned to a checked address, bounded whatever the receiver does."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook, WebhookVerificationError

from breakwater.channels.notify import Bounds, Notifier, connect, resolve
from breakwater.domain.callbacks import Delivered, Disabled, Refused, Retry

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4"
PAYLOAD = '{"type":"job.succeeded","text":"h\u00e9 \U0001f600"}'.encode()
PUBLIC = "93.184.215.14"
HOST = "hooks.example.com"
PATIENT = 20.0  # no test waits this long unless a bound is broken, however busy the machine
QUICK = Bounds(total_s=1.0, connect_s=1.0)
SMALL = Bounds(total_s=PATIENT, connect_s=PATIENT, answer_bytes=4_096)


# --- receivers ---


class Receiver(ThreadingHTTPServer):
    """A customer's endpoint: keeps what it gets and answers as told."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, status=200, headers=()):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.headers, self.got = status, dict(headers), []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook?a=b"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        """Keep the test output quiet."""


@contextlib.contextmanager
def serving(server):
    """Run a server for the length of a test."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def raw(behave):
    """A server that does with each connection what it wants."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)

        def accept():
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    opened, _ = listener.accept()
                    with opened, contextlib.suppress(OSError):
                        behave(opened, ended)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            ended.set()
            thread.join()


def local(**more):
    """A notifier that may speak to this machine."""
    return Notifier(loopback_hosts={"127.0.0.1", "localhost"}, **more)


def send(notifier, url, *, secrets=(SECRET,), allowed=("127.0.0.1", "localhost", HOST), payload=PAYLOAD):
    """One try, now."""
    return notifier.send(url, secrets, "job_1.7.notify.1", payload, int(time.time() * 1000), allowed_hosts=allowed)


# --- what arrives ---


class TestDelivery:
    def test_a_receiver_built_with_the_public_library_verifies_it(self):
        """Body, id, time and signature are those of the standard."""
        with serving(Receiver()) as receiver:
            assert send(local(), receiver.url) == Delivered(200)

            ((path, headers, body),) = receiver.got

        assert (path, body) == ("/hook?a=b", PAYLOAD)
        assert headers["host"] == f"127.0.0.1:{receiver.server_port}"
        assert headers["content-type"] == "application/json"
        assert headers["webhook-id"] == "job_1.7.notify.1"
        assert Webhook(SECRET).verify(body, headers)["type"] == "job.succeeded"
        with pytest.raises(WebhookVerificationError):
            Webhook(OTHER).verify(body, headers)

    def test_while_a_secret_rotates_both_receivers_verify_it(self):
        """One header, one signature for each current secret."""
        with serving(Receiver()) as receiver:
            send(local(), receiver.url, secrets=[OTHER, "", SECRET])

            ((_, headers, body),) = receiver.got

        for secret in (SECRET, OTHER):
            Webhook(secret).verify(body, headers)

    @pytest.mark.parametrize(
        ("status", "headers", "answer"),
        [
            (204, {}, Delivered(204)),
            (410, {}, Disabled("gone")),
            (429, {"Retry-After": "9"}, Retry("http_429", 9_000)),
            (503, {"Retry-After": "x"}, Retry("http_503")),
            (500, {"Retry-After": "9"}, Retry("http_500")),
            (404, {}, Retry("http_404")),
        ],
    )
    def test_the_answer_decides(self, status, headers, answer):
        """Delivered, disabled, or another try in the receiver's or our own time."""
        with serving(Receiver(status, headers)) as receiver:
            assert send(local(), receiver.url) == answer

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    def test_no_redirect_is_followed(self, status):
        """Not even to a host that is allowed: the address there was never checked."""
        with serving(Receiver()) as elsewhere, serving(Receiver(status, {"Location": elsewhere.url})) as receiver:
            assert send(local(), receiver.url) == Retry(f"http_{status}")

            assert len(receiver.got) == 1
            assert elsewhere.got == []

    def test_proxies_of_the_environment_are_not_used(self, monkeypatch):
        """The address that was checked is the one that is spoken to."""
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")

        with serving(Receiver()) as receiver:
            assert send(local(), receiver.url) == Delivered(200)

    def test_a_burst_is_delivered_and_leaves_nothing_behind(self):
        """Sixty at once, beside a receiver that never answers; every one signed for itself."""
        with serving(Receiver()) as receiver, raw(never) as silent, ThreadPoolExecutor(20) as pool:
            held_up = [pool.submit(send, local(bounds=QUICK), silent) for _ in range(3)]
            answers = list(pool.map(lambda _: send(local(), receiver.url), range(60)))

            assert answers == [Delivered(200)] * 60
            assert len(receiver.got) == 60
            assert [one.result() for one in held_up] == [Retry("timeout")] * 3


# --- receivers that misbehave ---


def never(_, ended):
    """Take the connection and say nothing."""
    ended.wait(PATIENT)


def drip(text):
    """Send one byte after the other, for ever."""

    def behave(opened, ended):
        for byte in itertools.cycle(text):
            if ended.wait(0.01):
                return
            opened.sendall(bytes([byte]))

    return behave


def flood(text, then=b""):
    """Send as fast as possible, for ever."""

    def behave(opened, ended):
        opened.sendall(text)
        while not ended.is_set():
            opened.sendall(then or text)

    return behave


def say(text):
    """Read the request, send this, close."""

    def behave(opened, _):
        opened.recv(65_536)
        opened.sendall(text)

    return behave


class TestBounds:
    @pytest.mark.parametrize(
        "behave",
        [
            never,
            drip(b"HTTP/1.1 200 OK\r\n" + b"x-filler: y\r\n" * 50),
            drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        ],
    )
    def test_a_slow_receiver_is_left(self, behave):
        """Silent, or one byte at a time: one deadline for everything."""
        with raw(behave) as url:
            started = time.monotonic()
            assert send(local(bounds=QUICK), url) == Retry("timeout")

            assert time.monotonic() - started < PATIENT / 2

    @pytest.mark.parametrize(
        ("behave", "reason"),
        [
            (flood(b"HTTP/1.1 200 OK\r\n", b"x" * 1000), "answer_too_large"),
            (flood(b"HTTP/1.1 100 Continue\r\n\r\n"), "answer_too_large"),
            (say(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"), "no_http"),
            (say(b"220 smtp.example.com ESMTP\r\n"), "no_http"),
            (say(b"HTTP/1.1 abc\r\n\r\n"), "no_http"),
            (say(b""), "cut"),
        ],
    )
    def test_an_endless_or_senseless_answer_is_none(self, behave, reason):
        """It ends by its size, and is tried again."""
        with raw(behave) as url:
            assert send(local(bounds=SMALL), url) == Retry(reason)

    def test_a_body_without_end_is_not_read(self):
        """The status is the answer; what follows is nobody's business."""
        with raw(flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000)) as url:
            assert send(local(bounds=SMALL), url) == Delivered(200)

    def test_a_receiver_that_stops_reading_is_left(self):
        """Sending is bounded like reading."""
        with raw(never) as url:
            assert send(local(bounds=QUICK), url, payload=b"x" * 20_000_000) == Retry("timeout")

    def test_nothing_is_begun_when_the_time_is_over(self):
        """A connection that came too late is closed, unused."""
        net = Net([PUBLIC])
        ours, theirs = socket.socketpair()
        net.connect = lambda *_: (time.sleep(1.2), ours)[1]

        assert send(net.notifier(bounds=Bounds(total_s=1.0)), f"https://{HOST}/") == Retry("timeout")

        assert ours.fileno() == -1
        theirs.close()

    def test_a_port_that_is_closed(self):
        """Nothing was sent."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

        assert send(local(), url) == Retry("connect")


# --- names and addresses ---


class Net:
    """A resolver and a dialler to look at: public addresses lead to a receiver on this machine."""

    def __init__(self, *answers, port=0, dead=()):
        self.answers, self.port, self.dead = list(answers), port, dead
        self.asked, self.dialled = [], []

    def resolve(self, host, port):
        self.asked.append((host, port))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def connect(self, address, port, seconds):
        self.dialled.append((address, port))
        if address in self.dead:
            raise ConnectionRefusedError
        return connect("127.0.0.1", self.port, seconds)

    def notifier(self, **more):
        return Notifier(resolve=self.resolve, connect=self.connect, **more)


class TestAddresses:
    @pytest.mark.parametrize(
        "addresses", [["10.0.0.1"], ["169.254.169.254"], ["::1"], [PUBLIC, "127.0.0.1"], ["::ffff:93.184.215.14"], []]
    )
    def test_a_name_that_leads_inwards_is_refused(self, addresses):
        """One such address among public ones is enough; nothing is connected."""
        net = Net(addresses)

        assert send(net.notifier(), f"https://{HOST}/") == Refused("address_not_public")
        assert net.dialled == []

    def test_a_name_that_changes_its_mind_is_not_asked_again(self, authority):
        """Rebinding: public when checked, private a moment later. Only the checked address is connected to."""
        with tls_receiver(authority) as receiver:
            net = Net([PUBLIC], ["127.0.0.1"], port=receiver.server_port)

            assert send(net.notifier(tls=authority.trusted()), f"https://{HOST}/") == Delivered(200)

            assert net.asked == [(HOST, 443)]
            assert net.dialled == [(PUBLIC, 443)]
            assert send(net.notifier(tls=authority.trusted()), f"https://{HOST}/") == Refused("address_not_public")

    def test_the_next_address_is_tried(self, authority):
        """Addresses in the resolver's order, each checked, until one answers."""
        with tls_receiver(authority) as receiver:
            net = Net(["2606:4700::1", PUBLIC], port=receiver.server_port, dead={"2606:4700::1"})

            assert send(net.notifier(tls=authority.trusted()), f"https://{HOST}/") == Delivered(200)

        assert [address for address, _ in net.dialled] == ["2606:4700::1", PUBLIC]

    def test_no_address_answers(self):
        """It may tomorrow."""
        assert send(Net([PUBLIC], dead={PUBLIC}).notifier(), f"https://{HOST}/") == Retry("connect")

    @pytest.mark.parametrize("error", [socket.gaierror(), UnicodeError(), TimeoutError()])
    def test_a_name_without_an_address(self, error):
        """It may have one tomorrow."""
        assert send(Net(error).notifier(), f"https://{HOST}/") == Retry("dns")

    def test_a_resolver_that_hangs_is_left(self):
        """The system's resolver knows no time-out of its own."""
        ended = threading.Event()
        notifier = Notifier(resolve=lambda *_: ended.wait(PATIENT) and [], bounds=QUICK)
        started = time.monotonic()

        assert send(notifier, f"https://{HOST}/") == Retry("dns")

        assert time.monotonic() - started < PATIENT / 2
        ended.set()

    def test_this_machine_is_only_spoken_to_when_the_process_allows_it(self):
        """An owner's list alone opens nothing inside."""
        with serving(Receiver()) as receiver:
            url = receiver.url.replace("127.0.0.1", "localhost")

            assert send(local(), url) == Delivered(200)
            assert send(Notifier(), url) == Refused("not_https")
            assert send(local(), url, allowed=()) == Refused("host_not_allowed")
            assert send(Notifier(), "https://127.0.0.1/") == Refused("address_not_public")

    @pytest.mark.parametrize("secrets", [[], ["", None]])
    def test_nothing_is_sent_unsigned(self, secrets):
        """Without a usable secret there is no notification, and not even a look at the name."""
        net = Net([PUBLIC])

        assert send(net.notifier(), f"https://{HOST}/", secrets=secrets) == Refused("no_usable_secret")
        assert net.asked == []

    def test_the_system_resolver_is_asked_for_plain_addresses(self):
        """What it gives can be checked."""
        assert set(resolve("localhost", 80)) <= {"127.0.0.1", "::1"}


# --- certificates ---


class Authority:
    """An issuer of certificates for the length of a test run."""

    def __init__(self, folder):
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._issue("test authority", self.key.public_key(), None, authority=True)

    def trusted(self):
        """What a client knows that trusts this issuer."""
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def server(self, host):
        """What a server of this name shows; `asked` lists the names it was asked for."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._issue(host, key.public_key(), x509.DNSName(host))
        path = self.folder / f"{host}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _issue(self, name, public_key, alternative, *, authority=False):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if authority else self.certificate.subject
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder(issuer, subject, public_key, x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if authority:
            usage = dict.fromkeys(
                ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
                False,
            )
            builder = builder.add_extension(
                x509.KeyUsage(key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False, **usage),
                critical=True,
            )
        if alternative:
            builder = builder.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """One issuer for all tests here."""
    return Authority(tmp_path_factory.mktemp("authority"))


class _TlsReceiver(Receiver):
    def __init__(self, context):
        super().__init__()
        self.context, self.names = context, []
        context.sni_callback = lambda _socket, name, _context: self.names.append(name)

    def finish_request(self, request, client_address):
        with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)


def tls_receiver(authority, host=HOST):
    """A receiver with a certificate for this name."""
    return serving(_TlsReceiver(authority.server(host)))


class TestCertificates:
    def test_the_name_is_verified_although_the_address_is_pinned(self, authority):
        """The server is asked for the host's name, and its certificate must carry it."""
        with tls_receiver(authority) as receiver:
            net = Net([PUBLIC], port=receiver.server_port)

            assert send(net.notifier(tls=authority.trusted()), f"https://{HOST}/x") == Delivered(200)

            ((path, headers, _),) = receiver.got
            assert receiver.names == [HOST]
        assert (path, headers["host"]) == ("/x", HOST)

    def test_a_certificate_for_another_name_is_refused(self, authority):
        """Nothing is sent to it."""
        with tls_receiver(authority, "other.example.com") as receiver:
            net = Net([PUBLIC], port=receiver.server_port)

            assert send(net.notifier(tls=authority.trusted()), f"https://{HOST}/") == Retry("certificate")
            assert receiver.got == []

    def test_a_certificate_of_an_unknown_issuer_is_refused(self, authority):
        """By default the system's issuers are trusted, no others."""
        with tls_receiver(authority) as receiver:
            net = Net([PUBLIC], port=receiver.server_port)

            assert send(net.notifier(), f"https://{HOST}/") == Retry("certificate")
            assert receiver.got == []

    def test_a_server_that_speaks_no_tls(self):
        """Plain HTTP on a TLS port is no receiver."""
        with raw(say(b"HTTP/1.1 200 OK\r\n\r\n")) as url:
            net = Net([PUBLIC], port=int(url.split(":")[2].strip("/")))

            assert send(net.notifier(), f"https://{HOST}/") == Retry("tls")

    def test_a_handshake_that_hangs_is_left(self):
        """It counts towards the one deadline."""
        with raw(never) as url:
            net = Net([PUBLIC], port=int(url.split(":")[2].strip("/")))

            assert send(net.notifier(bounds=QUICK), f"https://{HOST}/") == Retry("timeout")
