# gpuherd with its own host name; Caddy asks for the password and passes the user's name to the hub (docs: "A proxy that
# has logged people in"). Hash passwords with `caddy hash-password`. Since Caddy 2.8, `basicauth` is called `basic_auth`.
#
# The hub's gpuherd.toml. The hub is on a separate machine, so that only Caddy can connect from Caddy's address:
#
#   [hub]
#   listen = "10.0.0.6:8470"
#   allowed_hosts = ["gpus.example.org"]
#   trusted_proxies = ["10.0.0.5"]
#   [login.proxy]
#   networks = ["10.0.0.5"]

gpus.example.org {
	header Strict-Transport-Security max-age=31536000

	# Nodes and scripts send the hub's own credentials and tokens, nodes enrol with a token, and the address of a calendar
	# is its secret. The hub checks these; Caddy passes no name.
	@people {
		not path /api/v1/enroll /api/v1/calendar/*
		not header Authorization Bearer*
	}
	basicauth @people {
		import /etc/caddy/gpuherd.passwords
	}

	# No report and no form is larger; the hub rejects larger ones too.
	request_body {
		max_size 1MiB
	}
	reverse_proxy 10.0.0.6:8470 {
		# A live page is one endless response whose lines must be sent at once. The hub compresses it itself, so do not
		# use `encode` here.
		flush_interval -1
		# Always set, even to an empty value, so that a name from a client is overwritten. Other spellings are removed.
		header_up X-Remote-User {http.auth.user.id}
		header_up -X_Remote*
		header_up -X-Remote_*
		header_up -X-Remote-Groups
		header_up -X-Remote-Name
	}
}
