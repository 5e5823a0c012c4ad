"""Address ranges, compared with the results of Apache Kafka 4.4.0's CidrUtils."""

import pytest

from wirebroker.codecs.address_ranges import is_in_range, is_range, parse_range

HOSTS = (
    *("10.1.2.3", "10.0.0.0", "10.255.255.255", "11.0.0.0", "127.0.0.1", "192.168.1.1"),
    *("0.0.0.0", "255.255.255.255", "2001:db8:0:0:0:0:0:1", "2001:db8::1"),
    *("2001:db9:0:0:0:0:0:1", "0:0:0:0:0:0:0:1", "::1", "fe80:0:0:0:0:0:0:1%eth0"),
    *("fe80:0:0:0:0:0:0:1", "0:0:0:0:0:ffff:a01:203", "unknown", "", "*"),
)
TEN = HOSTS[:3]
DB8 = HOSTS[8:10]
V6 = HOSTS[8:15]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("10.0.0.0/8", TEN),
        ("10.1.2.3/8", TEN),
        ("010.0.0.0/8", TEN),
        ("10.0.0.0/08", TEN),
        ("10.0.0.0/0", (*HOSTS[:6], "255.255.255.255")),
        ("1.1.1.1/1", HOSTS[:5]),
        ("10.0.0.0/32", ("10.0.0.0",)),
        ("10.0.0.0/31", ("10.0.0.0",)),
        ("2001:db8::/32", DB8),
        ("2001:DB8::/32", DB8),
        ("[2001:db8::]/32", DB8),
        ("2001:db8:0:0:0:0:0:0/032", DB8),
        ("2001:db8::1/64", DB8),
        ("2001:db8::/128", ()),
        ("2001:db8::/0", V6),
        ("::/0", V6),
        ("0::0/00", V6),
        ("fe80::1%1/64", HOSTS[13:15]),
        ("::1/+64", ("0:0:0:0:0:0:0:1", "::1")),
        ("1:2:3:4:5:6:7::/16", ()),
        ("::10.1.2.3/120", ()),
        ("::ffff:0:1:2/96", ()),
        ("64:ff9b::1.2.3.4/96", ()),
    ],
)
def test_a_range_holds_the_addresses_with_its_prefix(text, hosts):
    assert is_range(text)
    parse_range(text)
    assert tuple(host for host in HOSTS if is_in_range(host, text)) == hosts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.0/33", "Value [33] not in range [0,32]"),
        ("300.0.0.0/33", "Value [300] not in range [0,255]"),
        ("10.0.0.256/8", "Value [256] not in range [0,255]"),
        ("2001:db8::/129", "Could not parse [2001:db8::/129] - prefix length must be"),
        ("g::/129", "Could not parse [g::/129] - prefix length must be between 0 and 128"),
        ("::/-1", "Could not parse [::/-1] - prefix length must be between 0 and 128"),
        ("::/", "Could not parse [::/] - invalid prefix length"),
        ("::/99999999999", "Could not parse [::/99999999999] - invalid prefix length"),
        ("::1/ 64", "Could not parse [::1/ 64] - invalid prefix length"),
        ("2001:db8::/64/1", "Could not parse [2001:db8::/64/1] - invalid prefix length"),
        ("1.2.3.4/8:", "Could not parse [1.2.3.4/8:] - invalid prefix length"),
        ("/8:", "Could not parse [/8:] - invalid prefix length"),
        ("::ffff:10.0.0.0/104", "Could not parse [::ffff:10.0.0.0] - not an IPv6 address"),
        ("::ffff:0:0/96", "Could not parse [::ffff:0:0] - not an IPv6 address"),
        *(
            (f"{address}/16", f"Could not parse [{address}]")
            for address in (
                *("g::", "a:b", "1:2:3:4:5:6:7:8:9", "::1::", "12345::", "::1.2.3", "::%"),
                *("::1.2.3.400", "[::1", "::1]", "1::2:3:4:5:6:7:8"),
            )
        ),
        *(
            (text, f"Could not parse [{text}]")
            for text in (
                *("10.0.0/8", "10.0.0.0/008", "10.0.0.0/", "/8", " 10.0.0.0/8", "10.0.0.0/8 "),
                *("10.0.0.0/ 8", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/255.0.0.0", "a/b", "*/8"),
                *("10.0.0.0/8/9", "0001.0.0.0/8", "10.0.0.0/\N{ARABIC-INDIC DIGIT EIGHT}"),
            )
        ),
    ],
)
def test_invalid_range_is_refused_with_kafkas_message(text, why):
    with pytest.raises(ValueError, match=r"parse|Value") as refused:
        parse_range(text)
    assert str(refused.value).startswith(why)
    assert not any(is_in_range(host, text) for host in HOSTS)
