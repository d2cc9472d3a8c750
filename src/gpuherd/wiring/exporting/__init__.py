"""The herd as files that any web server can serve: a page without need of a script, tables, JSON."""
