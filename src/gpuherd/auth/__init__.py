"""Who may speak as a node: join tokens, node credentials, enrolment."""
