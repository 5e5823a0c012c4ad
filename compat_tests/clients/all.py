"""Every client that tests use as a parameter."""

from compat_tests.clients.aio import AioKafka
from compat_tests.clients.confluent import Confluent
from compat_tests.clients.kafka_python import KafkaPython
from compat_tests.clients.kcat import Kcat
from compat_tests.clients.message import Client

LIBRARIES: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka())
CLIENTS: tuple[Client, ...] = (*LIBRARIES, Kcat())
