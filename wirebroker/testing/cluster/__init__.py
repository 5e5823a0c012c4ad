"""`Cluster`: nodes in separate processes, and the network between them."""
