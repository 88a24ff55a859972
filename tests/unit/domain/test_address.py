"""Where a notification may go: approved hosts, TLS, public addresses."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakwater.domain.address import Because, Forbidden, Target, checked, is_loopback, is_public, target_of

HOSTS = ("hooks.example.com", "*.example.org", "odd.example.net:8443", "[2606:4700::1]", "203.0.113.7")
LOCAL = frozenset({"127.0.0.1", "localhost"})

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.0.1"),  # noqa: S104
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.9", "192.0.2.1", "192.88.99.1", "192.168.1.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::8.8.8.8", "64:ff9b::8.8.8.8"),
    *("64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::"),
    *("2002:808:808::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0"),
    *("fec0::1", "ff02::1", "ff0e::1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1"),
    *("198.20.0.1", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001::200e", "2001:4860::1"),
]


class TestAddresses:
    @pytest.mark.parametrize("address", PRIVATE)
    def test_what_is_not_public_is_refused(self, address):
        """Local, shared, reserved, documentation, multicast, and IPv4 dressed up as IPv6."""
        assert not is_public(address)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_ordinary_addresses_are_public(self, address):
        """Also right beside the reserved ranges."""
        assert is_public(address)

    @pytest.mark.parametrize("address", ["", "localhost", "1.1.1", "0x7f.1", "2130706433", "1.1.1.1/32", "2606::1%x"])
    def test_what_is_no_plain_address_is_not_public(self, address):
        """A resolver gives plain addresses; anything else is not looked at twice."""
        assert not is_public(address)

    @settings(max_examples=300, derandomize=True, database=None, deadline=None)
    @given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0/96", "64:ff9b::/96", "::/96"]))
    def test_no_ipv4_address_gets_through_in_disguise(self, address, prefix):
        """Mapped, translated or compatible: the disguise itself is refused."""
        disguised = ip_network(prefix)[int(address)]

        assert not is_public(str(disguised))

    @settings(max_examples=300, derandomize=True, database=None, deadline=None)
    @given(st.ip_addresses())
    def test_the_standard_library_agrees_that_it_is_global(self, address):
        """Our own table only ever takes away."""
        if is_public(str(address)):
            assert address.is_global
            assert not address.is_multicast

    def test_one_bad_address_forbids_all(self):
        """A name that also points inwards is not used at all; an order of addresses stays."""
        target = Target("https", "h", 443, "/")

        assert checked(target, ["8.8.8.8", "2606:4700::1", "8.8.8.8"]) == ("8.8.8.8", "2606:4700::1")
        for bad in (["8.8.8.8", "10.0.0.1"], ["127.0.0.1"], []):
            assert checked(target, bad) == Forbidden(Because.ADDRESS_NOT_PUBLIC)

    def test_a_loopback_host_must_stay_on_this_machine(self):
        """Permission for this machine is no permission for the network."""
        target = Target("http", "localhost", 80, "/", loopback=True)

        assert checked(target, ["::1", "127.0.0.1"]) == ("::1", "127.0.0.1")
        for bad in (["127.0.0.1", "10.0.0.1"], ["8.8.8.8"], ["localhost"]):
            assert checked(target, bad) == Forbidden(Because.ADDRESS_NOT_PUBLIC)
        assert not is_loopback("8.8.8.8")


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "target"),
        [
            ("https://hooks.example.com", Target("https", "hooks.example.com", 443, "/")),
            ("HTTPS://Hooks.Example.COM.:443/a?b=c#d", Target("https", "hooks.example.com", 443, "/a?b=c")),
            ("https://a.b.example.org/x", Target("https", "a.b.example.org", 443, "/x")),
            ("https://odd.example.net:8443/", Target("https", "odd.example.net", 8443, "/")),
            ("https://[2606:4700::1]/", Target("https", "2606:4700::1", 443, "/")),
        ],
    )
    def test_approved_urls_are_read(self, url, target):
        """Case, a trailing dot, the default port and a fragment change nothing."""
        assert target_of(url, HOSTS) == target

    @pytest.mark.parametrize(
        ("url", "because"),
        [
            ("http://hooks.example.com/", Because.NOT_HTTPS),
            ("http://127.0.0.1/", Because.NOT_HTTPS),
            ("https://example.com/", Because.HOST_NOT_ALLOWED),
            ("https://example.org/", Because.HOST_NOT_ALLOWED),
            ("https://badexample.org/", Because.HOST_NOT_ALLOWED),
            ("https://hooks.example.com.evil.net/", Because.HOST_NOT_ALLOWED),
            ("https://hooks.example.com:8443/", Because.HOST_NOT_ALLOWED),
            ("https://odd.example.net/", Because.HOST_NOT_ALLOWED),
            ("https://127.0.0.1/", Because.HOST_NOT_ALLOWED),
            ("https://2130706433/", Because.HOST_NOT_ALLOWED),
            ("https://user@hooks.example.com/", Because.CREDENTIALS_IN_URL),
            ("https://:pass@hooks.example.com/", Because.CREDENTIALS_IN_URL),
            ("https://evil.net\\@hooks.example.com/", Because.UNREADABLE_URL),
            ("https://hooks.example.com/a b", Because.UNREADABLE_URL),
            ("https://hooks.example.com/a\r\nHost: x", Because.UNREADABLE_URL),
            ("https://hooks.example.com/\u00e9", Because.UNREADABLE_URL),
            ("https://h\u00f6oks.example.com/", Because.UNREADABLE_URL),
            ("https://hooks.example.com:x/", Because.UNREADABLE_URL),
            ("https://hooks.example.com:0/", Because.UNREADABLE_URL),
            ("https://hooks.example.com:65536/", Because.UNREADABLE_URL),
            ("https://hooks%2eexample.com/", Because.UNREADABLE_URL),
            ("https://[fe80::1%25eth0]/", Because.UNREADABLE_URL),
            ("https://[::1/", Because.UNREADABLE_URL),
            ("https://./", Because.UNREADABLE_URL),
            ("https:///path", Because.UNREADABLE_URL),
            ("https:hooks.example.com", Because.UNREADABLE_URL),
            ("ftp://hooks.example.com/", Because.UNREADABLE_URL),
            ("//hooks.example.com/", Because.UNREADABLE_URL),
            ("", Because.UNREADABLE_URL),
            ("https://hooks.example.com/" + "x" * 2048, Because.UNREADABLE_URL),
        ],
    )
    def test_everything_else_is_forbidden_with_a_reason(self, url, because):
        """Tricks with hosts, ports, user names and characters end here."""
        assert target_of(url, HOSTS) == Forbidden(because)

    @pytest.mark.parametrize("allowed", [[], [""], ["*"], ["*."], [":443"], ["hooks.example.com:"]])
    def test_no_entry_allows_everything(self, allowed):
        """An owner without approved hosts gets no notifications, and a bare star is no host."""
        assert target_of("https://hooks.example.com/", allowed) == Forbidden(Because.HOST_NOT_ALLOWED)

    def test_this_machine_needs_both_permissions(self):
        """The process must allow it as well as the owner; then any port and no TLS will do."""
        url = "http://localhost:8080/hook"

        assert target_of(url, ["localhost"], LOCAL) == Target("http", "localhost", 8080, "/hook", loopback=True)
        assert target_of(url, ["localhost"]) == Forbidden(Because.NOT_HTTPS)
        assert target_of(url, [], LOCAL) == Forbidden(Because.HOST_NOT_ALLOWED)

    @pytest.mark.parametrize(
        ("target", "authority"),
        [
            (Target("https", "h", 443, "/"), "h"),
            (Target("https", "h", 8443, "/"), "h:8443"),
            (Target("http", "h", 80, "/"), "h"),
            (Target("https", "2606:4700::1", 443, "/"), "[2606:4700::1]"),
            (Target("https", "2606:4700::1", 1, "/"), "[2606:4700::1]:1"),
        ],
    )
    def test_the_host_header_names_the_port_only_where_it_is_unusual(self, target, authority):
        """As browsers do."""
        assert target.authority == authority
