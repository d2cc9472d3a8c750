# gpuherd at a name of its own, and Caddy asks for the password and tells the hub who it is (docs: "A proxy that has
# logged people in"). Passwords are hashed with `caddy hash-password`; `basicauth` is called `basic_auth` from Caddy 2.8 on.
#
# The hub's gpuherd.toml, on a machine of its own so that nobody but Caddy can speak from Caddy's address:
#
#   [hub]
#   listen = "10.0.0.6:8470"
#   allowed_hosts = ["gpus.example.org"]
#   trusted_proxies = ["10.0.0.5"]
#   [login.proxy]
#   networks = ["10.0.0.5"]

gpus.example.org {
	header Strict-Transport-Security max-age=31536000

	# Nodes and scripts show a credential or token of the hub's own, nodes join with a token, the address of a calendar
	# is its secret: the hub checks these, and Caddy names nobody.
	@people {
		not path /api/v1/enroll /api/v1/calendar/*
		not header Authorization Bearer*
	}
	basicauth @people {
		import /etc/caddy/gpuherd.passwords
	}

	# No report and no form is larger; the hub refuses it as well.
	request_body {
		max_size 1MiB
	}
	reverse_proxy 10.0.0.6:8470 {
		# Live pages are one endless answer: each line of it has to leave at once. The hub compresses by itself:
		# no `encode` here.
		flush_interval -1
		# Always set, even to nothing, so that a name that a client makes up ends here. The other spellings are dropped.
		header_up X-Remote-User {http.auth.user.id}
		header_up -X_Remote*
		header_up -X-Remote_*
		header_up -X-Remote-Groups
		header_up -X-Remote-Name
	}
}
