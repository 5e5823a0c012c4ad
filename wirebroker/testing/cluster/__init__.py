"""`Cluster`: nodes in processes of their own, and the network between them."""
