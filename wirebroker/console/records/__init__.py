"""Records of topics: pages, searches, live tails and downloads."""
