from random import Random

from wirebroker.net.client.settings import Backoff, PeerAddress


def test_backoff_doubles_up_to_the_maximum_with_jitter():
    backoff = Backoff(first_s=0.05, most_s=1.0, jitter=0.2)
    random = Random(1)
    for failures, plain_s in [(1, 0.05), (2, 0.1), (3, 0.2), (6, 1.0), (1000, 1.0)]:
        drawn = [backoff.delay_s(failures, random) for _ in range(200)]
        assert plain_s * 0.8 <= min(drawn) < plain_s * 0.85
        assert plain_s * 1.15 < max(drawn) <= plain_s * 1.2


def test_no_backoff_without_a_failure():
    assert Backoff().delay_s(0, Random(1)) == 0


def test_backoff_is_determined_by_the_seed():
    backoff = Backoff()
    assert backoff.delay_s(3, Random(5)) == backoff.delay_s(3, Random(5))


def test_ipv6_address_is_formatted_in_brackets():
    assert str(PeerAddress("::1", 9092)) == "[::1]:9092"
    assert str(PeerAddress("broker", 9092)) == "broker:9092"
