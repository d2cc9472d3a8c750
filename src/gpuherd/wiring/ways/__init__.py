"""Ways to nodes, each put together from parts that do not know each other; imported when it is used."""
