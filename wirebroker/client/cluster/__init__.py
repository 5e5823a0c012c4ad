"""The cluster itself: brokers, quorum, features."""
