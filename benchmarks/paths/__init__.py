"""The code path of a request, without sockets."""
