"""The cluster itself: brokers, the controllers' quorum, features."""
