"""HTTP resources, one module each. They read the fleet and answer structs; nothing here computes."""
