"""Who has which GPU when: the rules of booking, without the database and without HTTP."""
