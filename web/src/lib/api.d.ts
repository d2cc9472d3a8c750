// Generated from OpenAPI f953c79b8ed27871d5641f4c7b2202e8c1810af37a5ddf2d5295992202b1622c by `npm run generate`; do not edit.
export interface paths {
    "/api/v1/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change your account
         * @description Change your display name. Only admins can change anything else. 409 ``name_taken``: another account or a
         *     group has this name.
         */
        patch: operations["changeOwnAccount"];
        trace?: never;
    };
    "/api/v1/account/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase your account
         * @description Delete your account, tokens and calendars. Past bookings lose the name, future ones are cancelled. 403
         *     ``password_wrong``. 409 ``last_admin``: the hub needs an admin. 422 ``name_wrong``.
         */
        post: operations["eraseOwnAccount"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything that is stored about you
         * @description Your account, sessions, tokens, calendars, bookings and audit entries, as one file. 429
         *     ``export_running``: only one at a time.
         */
        get: operations["exportOwnAccount"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/feeds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your calendars
         * @description Your calendars, the newest first, without their addresses.
         */
        get: operations["listFeeds"];
        put?: never;
        /**
         * Create a calendar
         * @description Create a calendar of bookings that any calendar program can read through its secret address. The hub
         *     stores only a digest, so the address is shown only once. 422 ``unknown_device``; 409 ``too_many_feeds``.
         */
        post: operations["createFeed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/feeds/{feed_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a calendar
         * @description Delete a calendar's address at once. 404: you have none with this id.
         */
        delete: operations["endFeed"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change your password
         * @description Ends all tokens and all other sessions of the account. 403 ``password_wrong``: the old password is wrong.
         *     422 ``password_weak``: the new one is too weak. 409 ``password_elsewhere``: another service manages it.
         */
        post: operations["changePassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your sessions
         * @description Your sessions, the newest first.
         */
        get: operations["listOwnSessions"];
        put?: never;
        post?: never;
        /**
         * Log out everywhere else
         * @description End all your sessions except this one.
         */
        delete: operations["endOtherSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Log out somewhere else
         * @description End one of your sessions. 404: you have none with this id.
         */
        delete: operations["endOwnSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your API tokens
         * @description Your valid tokens, the newest first, without their secrets.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Create an API token
         * @description Create a token for a program. The hub stores only a digest, so the token is shown only once. 422
         *     ``scope_needs_role``: your role does not allow this scope. 409 ``too_many_tokens``.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End an API token
         * @description End a token at once. 404: you have none with this id.
         */
        delete: operations["endToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All accounts
         * @description All accounts, including disabled ones.
         */
        get: operations["listAccounts"];
        put?: never;
        /**
         * Create an account
         * @description Create a local account. Without a password, one is generated and shown only in this response. 400
         *     ``name_invalid``. 409 ``name_taken``, ``linux_name_taken``. 422 ``password_weak``.
         */
        post: operations["createAccount"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{account_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One account
         * @description One account. 404: there is none with this id.
         */
        get: operations["getAccount"];
        put?: never;
        post?: never;
        /**
         * Erase an account
         * @description Delete an account, its tokens and calendars. Past bookings lose the name, future ones are cancelled. To
         *     lock someone out without losing anything, set ``is_disabled`` instead. 409 ``last_admin``.
         */
        delete: operations["eraseAccount"];
        options?: never;
        head?: never;
        /**
         * Change an account
         * @description Change role, groups or names, or disable an account. Its open streams end at once. A token can change the
         *     display name and disable an account. Role, groups, ``linux_names`` and enabling need a login in the
         *     browser: 403 ``forbidden``. 409 ``last_admin``: the hub needs an admin; ``linux_name_taken``;
         *     ``name_taken``: another account or a group has this display name.
         */
        patch: operations["changeAccount"];
        trace?: never;
    };
    "/api/v1/accounts/{account_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything that is stored about a person
         * @description Account, sessions, tokens, calendars, bookings and audit entries of a person, as one file. 429
         *     ``export_running``: only one at a time.
         */
        get: operations["exportAccount"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{account_id}/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a password
         * @description Generate a new password, shown only in this response. Ends sessions, tokens and calendars of the person.
         *     409 ``password_elsewhere``: another service manages it.
         */
        post: operations["resetPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{account_id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Log someone out everywhere
         * @description End all sessions of a person, and the addresses of their calendars.
         */
        delete: operations["endSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The nodes' WebSocket
         * @description WebSocket with subprotocol ``gpuherd.v1`` and the node's credential in ``Authorization: Bearer``.
         */
        get: operations["agentLink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The audit log
         * @description Entries that match all filters, the newest first. For the next page, send the number of the last one as
         *     ``before``.
         */
        get: operations["searchAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/booking-policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your booking limits
         * @description Your limits, and how much of them you have used.
         */
        get: operations["getBookingPolicy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Bookings
         * @description Bookings, the newest first. For the next page, send the number of the last one as ``before``.
         */
        get: operations["listBookings"];
        put?: never;
        /**
         * Book
         * @description Book devices, all or none; a weekly booking creates one for each week. With ``dry_run``, nothing is
         *     booked and the status is 200. 409 ``conflict``: a device is already booked; the error lists the conflicts
         *     and when all devices are free. 422: a field is invalid; ``path`` names it; ``idempotency_key_reused``:
         *     the key was used with another request.
         */
        post: operations["createBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One booking
         * @description One booking in any state. 404: there is none with this number.
         */
        get: operations["getBooking"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a booking
         * @description Change a booking as a whole. 409 ``past``: it is over; ``changed_meanwhile``: read it again first.
         */
        patch: operations["changeBooking"];
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a booking
         * @description Approve a pending booking. 409 ``changed_meanwhile``: it has changed since you read it; read it again.
         */
        post: operations["approveBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a booking
         * @description Cancel a booking that has not started; with ``series``, this one and all later ones of its weekly series.
         *     If it has started, only the later ones can be cancelled; release it instead. The response is what was
         *     cancelled.
         */
        post: operations["cancelBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/copy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Book the same again
         * @description Book the same devices at another time for yourself. You can also copy someone else's booking.
         */
        post: operations["copyBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend a booking
         * @description Set a later end, within your limits.
         */
        post: operations["extendBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/refuse": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refuse a booking
         * @description Refuse a pending booking; its devices can be booked again. 409 ``changed_meanwhile``: see approve.
         */
        post: operations["refuseBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bookings/{booking_id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Release a booking
         * @description End a current booking now, or cancel one that has not started.
         */
        post: operations["releaseBooking"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/calendar/{file_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A calendar of bookings
         * @description Bookings in iCalendar format (RFC 5545), up to a year back. The address is the secret: no login is
         *     needed. It ends with its owner's account, or when the owner deletes it. 404: this address does not exist.
         */
        get: operations["readCalendar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/enroll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enrol a node
         * @description Exchange a join token for the node's own credential. 403: the token is unknown, used up or expired. 409:
         *     the name is taken, or the credential belongs to another node. 429: too many failed attempts.
         */
        post: operations["enroll"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/fleet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The whole herd
         * @description All nodes with their devices, processes and totals, as of the last tick. For scripts; the page reads the
         *     stream. In a large herd, select the node you need: each takes about 10 KB.
         */
        get: operations["getFleet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/fleet/glance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What is free, and who holds what
         * @description All nodes and devices with their states, users and bookings, as columns, as of the last tick. A seventh
         *     of the size of ``GET /fleet``, and a twentieth with ``Accept-Encoding: gzip``: for frequent requests or
         *     large herds. Command lines and other details are left out.
         */
        get: operations["getGlance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/gpus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * GPUs and slices
         * @description Every GPU and slice with its availability, metrics and processes. With ``state``, a GPU that is split is
         *     left out if its slices have the same state.
         */
        get: operations["listGpus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Health of the hub
         * @description Status with reasons, every loop, the store, connections, viewers, and statistics of each node's frames.
         *     The response is 200 as long as the hub can respond; check ``status``. Viewers who see no names get only
         *     the status, and only admins see errors of the hub's parts.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Devices over time
         * @description Metrics of devices in equal steps, with the state of each. Null is a gap: nothing is known about that
         *     step. Each point stands for its whole step. ``resolution`` says what it was calculated from, ``missing``
         *     what is missing.
         */
        get: operations["getDeviceHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history/herd": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The herd over time
         * @description How many devices were in which state, and how busy they were; all, or those of one type.
         */
        get: operations["getHerdHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history/nodes/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A node's host over time
         * @description Metrics of a node's host, in the same format as devices. Nodes that are gone are included.
         */
        get: operations["getHostHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history/users/{user}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A user over time
         * @description How many GPUs a user held, in steps of a quarter of an hour or more. An unknown name held none.
         */
        get: operations["getUserHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/login/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Log in with single sign-on
         * @description For browsers: redirects to the provider, which redirects back to the callback. If the provider is down,
         *     the login form says so.
         */
        get: operations["startRedirectLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/login/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return from single sign-on
         * @description For browsers that return from the provider: logs in and redirects to the page. If that fails, the login
         *     form says why.
         */
        get: operations["finishRedirectLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All nodes
         * @description Every node, including those that have never reported.
         */
        get: operations["listNodes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{node_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One node
         * @description One node with its devices and processes.
         */
        get: operations["getNode"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{node_id}/acknowledge-gpu": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge a GPU's faults
         * @description Acknowledge the remembered Xids and the ECC errors of a GPU: only new ones are faults. 404: this node has
         *     no GPU with this UUID.
         */
        post: operations["acknowledgeGpu"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{node_id}/forget-gpu": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forget a missing GPU
         * @description Confirm that a missing GPU was taken out. 404: no such GPU is missing.
         */
        post: operations["forgetGpu"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{node_id}/recent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A node's last minutes
         * @description The last 15 minutes of a node and its devices, in steps of 5 seconds. Null is unknown, also while the
         *     node was not live. For newer values, follow the stream.
         */
        get: operations["getRecent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report as a node
         * @description Accept a report of the node whose credential is in ``Authorization: Bearer``. A node can report only for
         *     itself. Repeating a report is harmless. 429 ``too_many_frames``: this node sends too much, over WebSocket
         *     and HTTP together; the hub shows that on the node.
         */
        post: operations["postReport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Current session
         * @description Who you are, what you can see, and how you can log in.
         */
        get: operations["getSession"];
        put?: never;
        /**
         * Log in
         * @description Log in with a name and password; the response sets a cookie. 401 ``login_failed``: wrong name or
         *     password. 403 ``insecure``: the hub accepts no passwords over plain HTTP. 429: too many attempts, from
         *     this address or in total.
         */
        post: operations["logIn"];
        /**
         * Log out
         * @description End this session and remove the cookie. Without a session, this has no effect.
         */
        delete: operations["logOut"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Set up
         * @description Create the first admin and log in; the response sets a cookie. 403 ``code_invalid``: the link is unknown,
         *     used or expired; `gpuherd hub setup-link` prints a new one. 409 ``setup_done``: there is an admin. 403
         *     ``insecure``: the hub accepts no passwords over plain HTTP.
         */
        post: operations["setUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Next free slots
         * @description The next times at which this many devices are not booked, the earliest first. Programs without a booking
         *     are ignored. Devices that are faulty, offline or excluded from booking are not offered.
         */
        get: operations["findSlots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Live changes
         * @description Everything that the viewer can see, then the changes of each tick. The stream ends with the session or
         *     token, or when the account changes: then connect again. A viewer that is too slow for every change gets a
         *     new snapshot instead. With ``Accept-Encoding: gzip``, the stream is compressed. 503: too many viewers.
         */
        get: operations["stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Bookings, device by device
         * @description Every device, and every active or pending booking of one of them in a range.
         */
        get: operations["getTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who used how much
         * @description GPU-hours held, busy and wasted, energy and cost in a range, the largest first. The range is rounded to
         *     quarters of an hour, further back to hours; ``start`` and ``end`` are the exact range. The time of a
         *     shared GPU is divided among its users.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/distribution": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Utilisation of devices in use
         * @description Device-hours by utilisation, for devices in use.
         */
        get: operations["getUtilizationDistribution"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/hours": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * When the herd is busy
         * @description The share of devices that are busy, held and free, for each hour of the week in a time zone.
         */
        get: operations["getBusyHours"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/months/{month}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Monthly report
         * @description A month in a time zone by user, group, type and node, compared with the month before.
         */
        get: operations["getMonth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/over-time": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who used how much over time
         * @description The largest of a range, by hour, day, week or month in a time zone.
         */
        get: operations["getUsageOverTime"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who used which device when
         * @description Sessions on devices that overlap a range, the latest first. Start and end are those of the session;
         *     figures cover its part in the range. Full command lines are visible to the user who ran them and to
         *     admins, while they are stored. If admins read those of others, the audit log records it.
         */
        get: operations["getUsageSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/trends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who to ask for a GPU
         * @description What each user holds now and held recently, users who hold most first.
         */
        get: operations["getUsageTrends"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who holds what
         * @description Everyone with a process on a device now.
         */
        get: operations["listUsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Account
         * @description Someone who can log in.
         */
        Account: {
            /**
             * @description UTC epoch seconds.
             * @default 0
             */
            created_at?: number;
            /** @description Display name; the account's name if there is none. */
            display_name: string;
            /**
             * @description Sorted.
             * @default []
             */
            groups?: string[];
            /** @description Assigned by the hub; never reused for someone else. */
            id: string;
            /** @default false */
            is_disabled?: boolean;
            /**
             * @description UTC epoch seconds.
             * @default null
             */
            last_login_at?: number | null;
            /**
             * @description Linux users that belong to this person; sorted.
             * @default []
             */
            linux_names?: string[];
            /** @description Name to log in with. */
            name: string;
            /** @enum {unknown} */
            role: "admin" | "member" | "viewer";
            /**
             * @description Service that the person logs in with.
             * @default local
             * @enum {unknown}
             */
            source?: "ldap" | "local" | "oidc" | "pam" | "proxy";
        };
        /**
         * AccountChange
         * @description Changes that an admin makes to an account. Fields that are left out do not change.
         */
        AccountChange: {
            /** @description Display name that others see. */
            display_name?: string;
            /** @description All groups; they replace the previous ones. */
            groups?: string[];
            /** @description Whether the account is disabled. Nothing is lost. */
            is_disabled?: boolean;
            /** @description All Linux users that belong to this person; they replace the previous ones. */
            linux_names?: string[];
            /** @enum {unknown} */
            role?: "admin" | "member" | "viewer";
        };
        /**
         * AccountExport
         * @description Everything that is stored about a person.
         */
        AccountExport: {
            account: components["schemas"]["Account"];
            /** @description What the person did, and what was done to them. */
            audit: components["schemas"]["AuditEntry"][];
            bookings: components["schemas"]["Booking"][];
            /** @description UTC epoch seconds. */
            exported_at: number;
            feeds: components["schemas"]["FeedView"][];
            sessions: components["schemas"]["KeptSession"][];
            tokens: components["schemas"]["KeptToken"][];
            /**
             * @description Sessions on devices, as far back as they have a name.
             * @default []
             */
            usage?: components["schemas"]["UsageSession"][];
        };
        /**
         * AccountRequest
         * @description A local account to create.
         */
        AccountRequest: {
            /**
             * @description Display name. Default: the name.
             * @default null
             */
            display_name?: string | null;
            /** @description Groups of the account. */
            groups?: string[];
            /** @description Linux users that belong to this person, besides the one of the same name. */
            linux_names?: string[];
            /** @description Name to log in with. */
            name: string;
            /**
             * @description At least ten characters. Default: generated and shown once.
             * @default null
             */
            password?: string | null;
            /**
             * @default member
             * @enum {unknown}
             */
            role?: "admin" | "member" | "viewer";
        };
        /**
         * AcknowledgedFaults
         * @description What was acknowledged.
         */
        AcknowledgedFaults: {
            /** @description Empty: there was nothing to acknowledge. */
            faults: string[];
        };
        /**
         * Address
         * @description An address of a network interface that is up.
         */
        Address: {
            interface: string;
            ip: string;
        };
        /**
         * AnyDevices
         * @description Any devices that match; the hub chooses them when you book.
         */
        AnyDevices: {
            /** @default 1 */
            count?: number;
            /**
             * @description Minimum memory of each device.
             * @default null
             */
            min_memory_bytes?: number | null;
            /**
             * @description Words that the short or full name must contain, such as A100 80GB or 1g.10gb.
             * @default null
             */
            model?: string | null;
            /**
             * @description Require all on one node. Otherwise, one node is only preferred.
             * @default false
             */
            same_node?: boolean;
        };
        /**
         * AuditEntry
         * @description One entry of the audit log: who did what, when and from where.
         */
        AuditEntry: {
            account_id: string | null;
            /** @description Such as booking.create, account.role, login.failed. */
            action: string;
            /** @description UTC epoch seconds. */
            at: number;
            /** @description What changed, for people; never a secret. */
            detail: string;
            id: number;
            peer: string | null;
            /** @description What it was done to: an id or a name. */
            subject: string;
            /** @description Current name of the account, or what acted instead. */
            who: string;
        };
        /**
         * Availability
         * @description Whether a device is available: its state, the reason, and since when.
         */
        Availability: {
            /**
             * @description Hardware checks that could not be read, and therefore do not prevent *free*: slowdown, ecc, row_remap, page_retirement, recovery_action, xid.
             * @default []
             */
            not_checked?: string[];
            reason: string;
            /** @description Hub time, UTC epoch seconds. */
            since: number | null;
            /** @enum {unknown} */
            state: "booked" | "busy" | "fault" | "free" | "held" | "offline" | "stale" | "unknown";
        };
        /**
         * BookedDevice
         * @description A device of a booking, with its names.
         */
        BookedDevice: {
            /** @description Index of a slice within its GPU; null if the device is gone. */
            index: number | null;
            /** @description No node reports it any more. */
            is_gone: boolean;
            node_id: string;
            /** @description The node's id if the node is gone. */
            node_name: string;
            /** @description Index of a slice's GPU. */
            parent_index: number | null;
            /** @description Null if the device is gone. */
            short_name: string | null;
            uuid: string;
        };
        /**
         * Booking
         * @description One booking of one or more devices.
         */
        Booking: {
            /** @description UTC epoch seconds. */
            changed_at: number;
            comment: string;
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description Sorted; never empty. */
            devices: components["schemas"]["DeviceRef"][];
            /** @description The first second after the booking. */
            ends_at: number;
            /** @description Group that the booking is for. */
            group: string | null;
            id: number;
            /**
             * @description Whether it was made here or read from a comments.json.
             * @default person
             * @enum {unknown}
             */
            origin?: "comments" | "person";
            /** @description Account of the holder; null if there is none. */
            owner_id: string | null;
            /** @description Display name of the holder, or of the group it is for. */
            owner_name: string;
            /**
             * @description Original end of a booking that was released early.
             * @default null
             */
            released_from?: number | null;
            /** @description Revision of the last change; send it back when you change the booking. */
            revision: number;
            /**
             * @description Series of a weekly booking.
             * @default null
             */
            series_id?: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
            /** @enum {unknown} */
            state: "active" | "cancelled" | "pending" | "refused";
            title: string;
            /** @description IANA time zone in which it was made. */
            zone: string;
        };
        /**
         * BookingChange
         * @description Changes to a booking. Fields that are left out do not change.
         */
        BookingChange: {
            comment?: string;
            devices?: components["schemas"]["DeviceRef"][];
            end?: number | string;
            /** @description Null: no longer for a group. */
            group?: string | null;
            /** @description Revision of the booking you read. If it has changed since, nothing is done. */
            revision?: number;
            /** @description Only for a booking that has not started. */
            start?: number | string;
            title?: string;
            /** @description Default: the booking's time zone. */
            zone?: string;
        };
        /**
         * BookingConflict
         * @description A conflicting booking, on one device.
         */
        BookingConflict: {
            booking_id: number;
            device: components["schemas"]["BookedDevice"];
            /** @description UTC, whole seconds. */
            ends_at: number;
            holder: string;
            /** @description UTC, whole seconds. */
            starts_at: number;
        };
        /**
         * BookingPolicy
         * @description What the viewer can book, and how much of it is used. A limit that is null does not apply.
         */
        BookingPolicy: {
            /** @description Most devices at one time from now on. */
            devices_booked: number;
            /** @description Device-hours booked from now on. */
            gpu_hours_ahead: number | null;
            /** @description Device-hours booked from now on. */
            gpu_hours_booked: number;
            /** @description Groups that you can book for. */
            groups: string[];
            horizon_days: number | null;
            /** @description An admin: no limits except other bookings. */
            is_exempt: boolean;
            max_days: number | null;
            /** @description Devices at one time. */
            max_devices: number | null;
            may_book: boolean;
            needs_approval: boolean;
            /**
             * @description Whether a booking request with an Idempotency-Key can be repeated safely.
             * @default true
             */
            takes_idempotency_keys?: boolean;
            /** @description Time zone of texts without one. */
            zone: string;
        };
        /**
         * BookingRequest
         * @description A booking to make. Set ``devices`` and ``nodes``, or one of ``any`` and ``running``.
         */
        BookingRequest: {
            /**
             * @description A number of devices of a type; can be written as text: "2 x A100 80GB".
             * @default null
             */
            any?: string | components["schemas"]["AnyDevices"] | null;
            /** @default  */
            comment?: string;
            /**
             * @description These devices. A GPU that is split means all its slices.
             * @default []
             */
            devices?: components["schemas"]["DeviceRef"][];
            /**
             * @description Check everything and return what would be booked, but book nothing.
             * @default false
             */
            dry_run?: boolean;
            /** @description UTC epoch seconds, or text: "3d 4h", "until friday 18:00". */
            end: number | string;
            /**
             * @description Group that the booking is for; all its members can change it.
             * @default null
             */
            group?: string | null;
            /**
             * @description Every device of these nodes, by their ids.
             * @default []
             */
            nodes?: string[];
            /**
             * @description The devices on which your processes run now.
             * @default false
             */
            running?: boolean;
            /**
             * @description UTC epoch seconds, or text: "now", "tomorrow 9:00", "2026-11-20 18:00".
             * @default now
             */
            start?: number | string;
            /** @default  */
            title?: string;
            /** @default null */
            weekly?: components["schemas"]["Weekly"] | null;
            /**
             * @description IANA time zone of the texts. Default: bookings.zone.
             * @default null
             */
            zone?: string | null;
        };
        /**
         * BookingUsage
         * @description Booked and used device-hours of bookings in the range, up to now.
         */
        BookingUsage: {
            booked_hours: number;
            /** @description Of these, used only by others. */
            others_hours: number;
            /** @description Of these, used by nobody. */
            unused_hours: number;
            /** @description Of these, used by the holder. */
            used_hours: number;
        };
        /**
         * BookingView
         * @description One booking as the viewer can see it.
         */
        BookingView: {
            changed_at: number;
            /** @description Empty in the public view. */
            comment: string;
            created_at: number;
            devices: components["schemas"]["BookedDevice"][];
            /** @description The first second after the booking. */
            ends_at: number;
            /** @description Group that it is for; never public. */
            group: string | null;
            /** @description Holder: display name of a person or group; for the public, a pseudonym. */
            holder: string;
            /** @description 0 in a dry run: nothing was booked. */
            id: number;
            /** @description It belongs to the viewer or to one of the viewer's groups. */
            is_own: boolean;
            /** @description The viewer can change, release or cancel it now. */
            may_edit: boolean;
            /**
             * @description Whether it was made here or read from a comments.json.
             * @enum {unknown}
             */
            origin: "comments" | "person";
            /** @description The holder's account; never public. */
            owner_id: string | null;
            /** @enum {unknown} */
            phase: "current" | "past" | "upcoming";
            /** @description Original end of a booking that was released early. */
            released_from: number | null;
            /** @description Send it back when you change the booking. */
            revision: number;
            series_id: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
            /**
             * @description Pending: needs an admin's approval; its devices are reserved.
             * @enum {unknown}
             */
            state: "active" | "cancelled" | "pending" | "refused";
            /** @description Empty in the public view. */
            title: string;
            /** @description IANA time zone in which it was made; for the public, always UTC. */
            zone: string;
        };
        /**
         * Cancellation
         * @description What to cancel.
         */
        Cancellation: {
            /**
             * @description Also cancel the later bookings of the same weekly series. If this one has started, only those are cancelled.
             * @default false
             */
            series?: boolean;
        };
        /**
         * CopyRequest
         * @description The same devices for the same duration, at another time.
         */
        CopyRequest: {
            /**
             * @description Default: the same duration as the original.
             * @default null
             */
            end?: number | string | null;
            start: number | string;
            /**
             * @description Default: the booking's time zone.
             * @default null
             */
            zone?: string | null;
        };
        /**
         * CreatedAccount
         * @description A new account.
         */
        CreatedAccount: {
            account: components["schemas"]["Account"];
            /** @description Generated password, shown only once; null if you set one. */
            password: string | null;
        };
        /**
         * CreatedFeed
         * @description A new calendar.
         */
        CreatedFeed: {
            /** @description UTC epoch seconds. */
            created_at: number;
            device: components["schemas"]["DeviceRef"] | null;
            id: string;
            /** @enum {unknown} */
            kind: "account" | "device";
            /** @description Path of the address, with the secret in it. Shown only once; keep it to yourself. */
            path: string;
        };
        /**
         * CreatedToken
         * @description A new token.
         */
        CreatedToken: {
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description UTC epoch seconds. */
            expires_at: number;
            id: string;
            scopes: ("admin" | "book" | "read")[];
            title: string;
            /** @description The secret, shown only once; send it as Authorization: Bearer. */
            token: string;
        };
        /**
         * Decision
         * @description An admin's decision.
         */
        Decision: {
            /** @description Revision of the booking you read. If it has changed since, nothing is decided. */
            revision: number;
        };
        /**
         * DeviceBookingView
         * @description A booking of a device: the current one, the next one, or one that ended in the last three days.
         */
        DeviceBookingView: {
            /** @description UTC, whole seconds. */
            ends_at: number;
            /** @description Holder; for the public, a pseudonym. */
            holder: string;
            id: number;
            /** @enum {unknown} */
            phase: "current" | "next" | "past";
            /** @description UTC, whole seconds. */
            starts_at: number;
            /** @description Null: not visible to the viewer. */
            title: string | null;
            /**
             * @description How the device is used during the booking; null before and after it.
             * @default null
             */
            use?: ("holder" | "others" | "shared" | "unknown" | "unused") | null;
        };
        /**
         * DeviceBookings
         * @description All bookings to show at one device; the list can be empty.
         */
        DeviceBookings: {
            bookings: components["schemas"]["DeviceBookingView"][];
            row: number;
        };
        /**
         * DeviceColumns
         * @description Devices whose numbers have changed: position i of every list belongs to row ``row[i]``. Values are in the
         *         units to which they are rounded, because they make up half of the stream.
         */
        DeviceColumns: {
            clock_sm_megahertz: (number | null)[];
            fan_ratio: (number | null)[];
            memory_used_mebibytes: (number | null)[];
            power_watts: (number | null)[];
            row: number[];
            temperature_celsius: (number | null)[];
            utilization_gpu: (number | null)[];
            utilization_memory: (number | null)[];
        };
        /**
         * DeviceDetailColumns
         * @description Devices with changes in values that rarely change.
         */
        DeviceDetailColumns: {
            ecc_uncorrected: (number | null)[];
            performance_state: (number | null)[];
            power_limit_watts: (number | null)[];
            row: number[];
            throttle_reasons: (number | null)[];
        };
        /**
         * DeviceFacts
         * @description Inventory of a GPU or slice. It changes only with the machine or its MIG layout.
         */
        DeviceFacts: {
            /**
             * @description Highest SM clock.
             * @default null
             */
            clock_sm_max_hertz?: number | null;
            /**
             * @description CUDA compute capability, such as 9.0.
             * @default null
             */
            compute_capability?: string | null;
            /**
             * @description GPU instance of a slice. Slices of one GPU with the same number share their memory, so the memory values are those of all of them together.
             * @default null
             */
            gpu_instance?: number | null;
            /**
             * @description Health checks that this device supports: slowdown, ecc, row_remap, page_retirement, recovery_action, xid; newer agents may add more. Checks that are not listed were not made.
             * @default []
             */
            health_checks?: string[];
            /** @description Position in the driver's order; for a slice, its position within the GPU. */
            index: number;
            /**
             * @description MIG is on: the slices do the work, not this device.
             * @default false
             */
            is_partitioned?: boolean;
            /**
             * @description A whole GPU or a MIG slice of one.
             * @default gpu
             * @enum {unknown}
             */
            kind?: "gpu" | "slice";
            /**
             * @description What the memory values include: the framebuffer; the framebuffer with the driver's reserve (old drivers); or the host's memory on unified-memory machines.
             * @default framebuffer
             * @enum {unknown}
             */
            memory_basis?: "framebuffer" | "framebuffer_with_reserved" | "host";
            /**
             * @description Memory that the device can use.
             * @default null
             */
            memory_total_bytes?: number | null;
            /** @description Product name as reported by the driver. */
            name: string;
            /**
             * @description GPU of a slice.
             * @default null
             */
            parent_uuid?: string | null;
            /**
             * @description PCI address, such as 00000000:3B:00.0.
             * @default null
             */
            pci_bus_id?: string | null;
            /**
             * @description Default power limit.
             * @default null
             */
            power_limit_default_watts?: number | null;
            /**
             * @description MIG profile of a slice, such as 1g.10gb.
             * @default null
             */
            profile?: string | null;
            /**
             * @description Serial number of the board.
             * @default null
             */
            serial?: string | null;
            /** @description The vendor's unique id; identifies the device everywhere. */
            uuid: string;
            /**
             * @description nvidia, amd, intel or simulated.
             * @default nvidia
             */
            vendor?: string;
        };
        /**
         * DeviceInventory
         * @description A device in the live stream: its facts and the row of its numbers.
         */
        DeviceInventory: {
            facts: components["schemas"]["DeviceFacts"];
            /**
             * @description Hub time (UTC epoch seconds) since which its node no longer reports the device; null while it does.
             * @default null
             */
            missing_since?: number | null;
            row: number;
            short_name: string;
        };
        /**
         * DevicePlace
         * @description A device by where it is.
         */
        DevicePlace: {
            index: number;
            node_id: string;
            /** @enum {unknown} */
            state: "booked" | "busy" | "fault" | "free" | "held" | "offline" | "stale" | "unknown";
            uuid: string;
        };
        /**
         * DeviceRef
         * @description A device by its node and UUID: nodes could claim each other's UUIDs.
         */
        DeviceRef: {
            node_id: string;
            uuid: string;
        };
        /**
         * DeviceSample
         * @description Metrics of a device at one moment.
         */
        DeviceSample: {
            /**
             * @description Memory clock.
             * @default null
             */
            clock_memory_hertz?: number | null;
            /**
             * @description SM clock.
             * @default null
             */
            clock_sm_hertz?: number | null;
            /**
             * @description Corrected ECC errors since the driver was loaded.
             * @default null
             */
            ecc_corrected?: number | null;
            /**
             * @description Uncorrected ECC errors since the driver was loaded.
             * @default null
             */
            ecc_uncorrected?: number | null;
            /**
             * @description Energy used since the driver was loaded.
             * @default null
             */
            energy_joules?: number | null;
            /**
             * @description Fan speed as a share of its maximum.
             * @default null
             */
            fan_ratio?: number | null;
            /**
             * @description Memory reserved by driver and firmware.
             * @default null
             */
            memory_reserved_bytes?: number | null;
            /**
             * @description Memory allocated.
             * @default null
             */
            memory_used_bytes?: number | null;
            /**
             * @description PCIe throughput to the device (off by default: expensive to read).
             * @default null
             */
            pcie_receive_bytes_per_second?: number | null;
            /**
             * @description PCIe throughput from the device (off by default: expensive to read).
             * @default null
             */
            pcie_send_bytes_per_second?: number | null;
            /**
             * @description 0 is the fastest; NVIDIA writes it P0.
             * @default null
             */
            performance_state?: number | null;
            /**
             * @description Current power limit.
             * @default null
             */
            power_limit_watts?: number | null;
            /**
             * @description Power drawn.
             * @default null
             */
            power_watts?: number | null;
            /**
             * @description Core temperature.
             * @default null
             */
            temperature_celsius?: number | null;
            /**
             * @description Sum of ThrottleReason flags; 0 is no throttling.
             * @default null
             */
            throttle_reasons?: number | null;
            /**
             * @description Utilisation of the video decoder.
             * @default null
             */
            utilization_decoder?: number | null;
            /**
             * @description Utilisation of the video encoder.
             * @default null
             */
            utilization_encoder?: number | null;
            /**
             * @description Share of the last period in which a kernel ran.
             * @default null
             */
            utilization_gpu?: number | null;
            /**
             * @description Share of the last period in which memory was read or written.
             * @default null
             */
            utilization_memory?: number | null;
        };
        /**
         * DeviceStateColumns
         * @description Devices whose availability changed.
         */
        DeviceStateColumns: {
            reason: string[];
            row: number[];
            since: (number | null)[];
            state: ("booked" | "busy" | "fault" | "free" | "held" | "offline" | "stale" | "unknown")[];
        };
        /**
         * DeviceView
         * @description One GPU or slice with everything known about it.
         */
        DeviceView: {
            availability: components["schemas"]["Availability"];
            /**
             * @description In the order of their times.
             * @default []
             */
            bookings?: components["schemas"]["DeviceBookingView"][];
            facts: components["schemas"]["DeviceFacts"];
            /**
             * @description Hub time (UTC epoch seconds) since which its node no longer reports the device; null while it does.
             * @default null
             */
            missing_since?: number | null;
            node_id: string;
            processes: components["schemas"]["ProcessView"][];
            sample: components["schemas"]["DeviceSample"];
            /** @description Product name without common words. */
            short_name: string;
        };
        /**
         * Disk
         * @description A mounted file system.
         */
        Disk: {
            mount: string;
            total_bytes: number;
        };
        /**
         * Distribution
         * @description Utilisation of devices in use: device-hours by utilisation.
         */
        Distribution: {
            by_type: {
                [key: string]: number[];
            };
            /** @description Boundaries of the classes, one more than there are classes. */
            edges: number[];
            end: number;
            /** @description Device-hours in each class, of devices in use. */
            hours: number[];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            start: number;
        };
        /**
         * EnrolmentRequest
         * @description A machine that wants to become a node.
         */
        EnrolmentRequest: {
            /**
             * @description A secret created by the node: ghn_ and 256 random bits in base64url without padding. With it, the same request can be sent again if the response is lost, and gets the same response. Without it, the hub creates one.
             * @default null
             */
            credential?: string | null;
            /** @description Host name of the machine. */
            hostname: string;
            /**
             * @description Display name. Default: the host name.
             * @default null
             */
            name?: string | null;
            /** @description Join token from `gpuherd token create`. */
            token: string;
        };
        /**
         * EnrolmentResult
         * @description Identity of the node from now on.
         */
        EnrolmentResult: {
            /** @description The node's secret: the one it sent, or a new one, shown only once. */
            credential: string;
            /** @description Id assigned by the hub; unique and permanent. */
            node_id: string;
        };
        /**
         * ErasureRequest
         * @description Confirmation.
         */
        ErasureRequest: {
            /** @description Your name. */
            name: string;
            /**
             * @description Your password, if the account has one on this hub.
             * @default
             */
            password?: string;
        };
        /**
         * ErrorBody
         * @description The body of every error response.
         */
        ErrorBody: {
            error: components["schemas"]["ErrorDetail"];
        };
        /**
         * ErrorDetail
         * @description What went wrong.
         */
        ErrorDetail: {
            /**
             * @description Both readings of a time that can be read in two ways (ambiguous_time, nonexistent_time).
             * @default []
             */
            choices?: components["schemas"]["TimeChoice"][];
            /** @description Stable, for programs. */
            code: string;
            /**
             * @description The first few conflicting bookings.
             * @default []
             */
            conflicts?: components["schemas"]["BookingConflict"][];
            /** @description For people; says what to do. */
            message: string;
            /**
             * @description After a conflict: when all devices are free for the same duration.
             * @default null
             */
            next_free?: number | null;
            /**
             * @description Place in the input that is wrong.
             * @default null
             */
            path?: string | null;
        };
        /**
         * Extension
         * @description A later end.
         */
        Extension: {
            /** @description A duration such as "1d" counts from the current end of the booking. */
            end: number | string;
            /** @default null */
            revision?: number | null;
            /**
             * @description Default: the booking's time zone.
             * @default null
             */
            zone?: string | null;
        };
        /**
         * FeedRequest
         * @description A calendar to create.
         */
        FeedRequest: {
            /**
             * @description The device, for a device's calendar.
             * @default null
             */
            device?: components["schemas"]["DeviceRef"] | null;
            /**
             * @description account: your own bookings and those of your groups; device: all bookings of one device.
             * @default account
             * @enum {unknown}
             */
            kind?: "account" | "device";
        };
        /**
         * FeedView
         * @description A calendar with a secret address, without the address.
         */
        FeedView: {
            /** @description UTC epoch seconds. */
            created_at: number;
            device: components["schemas"]["DeviceRef"] | null;
            id: string;
            /** @enum {unknown} */
            kind: "account" | "device";
        };
        /**
         * FleetChange
         * @description One message of the live stream. ``after_tick`` is the tick it builds on; null in a snapshot.
         */
        FleetChange: {
            /** @description If you have missed a tick, request a new snapshot. */
            after_tick: number | null;
            /** @description Devices whose bookings changed. */
            device_bookings: components["schemas"]["DeviceBookings"][];
            device_details: components["schemas"]["DeviceDetailColumns"];
            device_states: components["schemas"]["DeviceStateColumns"];
            devices: components["schemas"]["DeviceColumns"];
            host_states: components["schemas"]["HostStateColumns"];
            hosts: components["schemas"]["HostColumns"];
            nodes: components["schemas"]["NodeInventory"][];
            /** @description All current ones. */
            notices: components["schemas"]["FleetNotice"][];
            /** @description Node rows that were removed. */
            removed: number[];
            tick: number;
            /** @description Time until the next message. */
            tick_seconds: number;
            /** @description Hub time; ages refer to it. */
            time: number;
            totals: components["schemas"]["Totals"];
            uses: components["schemas"]["UseColumns"];
        };
        /**
         * FleetNotice
         * @description Something about the whole herd that every viewer should know.
         */
        FleetNotice: {
            code: string;
            message: string;
            /**
             * @description Hub time, UTC epoch seconds.
             * @default null
             */
            since?: number | null;
        };
        /**
         * FleetView
         * @description Everything, as nested objects: for scripts. The page uses the stream.
         */
        FleetView: {
            nodes: components["schemas"]["NodeView"][];
            notices: components["schemas"]["FleetNotice"][];
            tick: number;
            /** @description When the hub last updated all states: hub time, UTC epoch seconds. */
            time: number;
            totals: components["schemas"]["Totals"];
        };
        /**
         * FreeSlot
         * @description A time in which the requested devices are free.
         */
        FreeSlot: {
            devices: components["schemas"]["BookedDevice"][];
            /** @description UTC, whole seconds. */
            ends_at: number;
            /** @description Start of the next booking of one of these; null if there is none. */
            free_until: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
        };
        /**
         * Glance
         * @description What is free, and who holds what, in the whole herd. ``GET /fleet`` returns everything.
         */
        Glance: {
            bookings: components["schemas"]["GlanceBookings"][];
            devices: components["schemas"]["GlanceDevices"];
            models: components["schemas"]["GlanceModel"][];
            nodes: components["schemas"]["GlanceNodes"];
            notices: components["schemas"]["FleetNotice"][];
            problems: components["schemas"]["GlanceProblem"][];
            processes: components["schemas"]["GlanceProcesses"];
            tick: number;
            /** @description When the hub last updated all states: hub time, UTC epoch seconds. */
            time: number;
            totals: components["schemas"]["Totals"];
        };
        /**
         * GlanceBookings
         * @description The current and the next booking of a device.
         */
        GlanceBookings: {
            bookings: components["schemas"]["DeviceBookingView"][];
            /** @description Position in ``devices``. */
            device: number;
        };
        /**
         * GlanceDevices
         * @description All devices, node by node: position i of every list belongs to one device.
         */
        GlanceDevices: {
            index: number[];
            memory_used_mebibytes: (number | null)[];
            /** @description Positions in ``models``. */
            model: number[];
            /** @description GPU of a slice. */
            parent_uuid: (string | null)[];
            power_watts: (number | null)[];
            reason: string[];
            /** @description Hub time, UTC epoch seconds. */
            since: (number | null)[];
            state: ("booked" | "busy" | "fault" | "free" | "held" | "offline" | "stale" | "unknown")[];
            temperature_celsius: (number | null)[];
            utilization_gpu: (number | null)[];
            uuid: string[];
        };
        /**
         * GlanceModel
         * @description A model that some of the devices have.
         */
        GlanceModel: {
            /** @description MIG is on: the slices do the work. */
            is_partitioned: boolean;
            /** @enum {unknown} */
            kind: "gpu" | "slice";
            /** @enum {unknown} */
            memory_basis: "framebuffer" | "framebuffer_with_reserved" | "host";
            memory_total_bytes: number | null;
            /** @description Product name as reported by the driver. */
            name: string;
            /** @description MIG profile of a slice, such as 1g.10gb. */
            profile: string | null;
            /** @description Product name without common words. */
            short_name: string;
            vendor: string;
        };
        /**
         * GlanceNodes
         * @description All nodes in display order: position i of every list belongs to one node.
         */
        GlanceNodes: {
            /** @description Age of the last report; null if there was none. */
            age_seconds: (number | null)[];
            /** @description Number of the node's entries in ``devices``, which are consecutive. */
            device_count: number[];
            /** @description Host names; null before the first report. */
            hostname: (string | null)[];
            id: string[];
            /** @description Display names. */
            name: string[];
            reason: string[];
            state: ("live" | "never" | "offline" | "stale")[];
        };
        /**
         * GlanceProblem
         * @description Problems that a node reports.
         */
        GlanceProblem: {
            /** @description Position in ``nodes``. */
            node: number;
            problem: components["schemas"]["Problem"];
        };
        /**
         * GlanceProcesses
         * @description All compute processes: position i of every list belongs to one process on one device.
         */
        GlanceProcesses: {
            /** @description Positions in ``devices``. */
            device: number[];
            gpu_memory_mebibytes: (number | null)[];
            pid: number[];
            /** @description UTC epoch seconds by the node's clock. */
            started_at: (number | null)[];
            user: (string | null)[];
        };
        /**
         * GroupHealth
         * @description One list of nodes that the hub polls.
         */
        GroupHealth: {
            /** @description Nodes that cannot be reached right now, or whose data cannot be read. */
            failing: number;
            /** @description When the list was last read. */
            found_at: number | null;
            /** @description Nodes that are no longer in the list and will be removed soon. */
            missing: number;
            name: string;
            nodes: number;
            /** @description Entries that are left out, and why. */
            refused: {
                [key: string]: string;
            };
            /** @description Why the last good list is still in use. */
            trouble: string | null;
            trouble_since: number | null;
            /** @enum {unknown} */
            way: "file" | "gpustat" | "http_files" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * Health
         * @description The hub's own state; ``degraded`` comes with reasons that say what to do.
         */
        Health: {
            /**
             * @description Null: no history is recorded.
             * @default null
             */
            history?: components["schemas"]["HistoryHealth"] | null;
            links: components["schemas"]["LinkHealth"];
            lists: components["schemas"]["GroupHealth"][];
            /**
             * @default {
             *       "asked_nodes": 0,
             *       "episodes": 0,
             *       "interval_stretch": 1,
             *       "overloaded_since": null,
             *       "reading_seconds": 0,
             *       "writing_seconds": 0
             *     }
             */
            load?: components["schemas"]["LoadHealth"];
            loops: components["schemas"]["LoopHealth"][];
            nodes: components["schemas"]["NodeHealth"][];
            reasons: string[];
            /** @enum {unknown} */
            status: "degraded" | "ok";
            store: components["schemas"]["StoreHealth"];
            tick: number;
            /** @description Hub time, UTC epoch seconds. */
            time: number;
            uptime_seconds: number;
            version: string;
            viewers: components["schemas"]["ViewerHealth"];
        };
        /**
         * HealthSummary
         * @description The public part of the hub's health, for monitoring and for nodes that check the hub and its clock.
         */
        HealthSummary: {
            /** @enum {unknown} */
            status: "degraded" | "ok";
            /** @description Hub time, UTC epoch seconds. */
            time: number;
            uptime_seconds: number;
            version: string;
        };
        /**
         * HerdSeries
         * @description The whole herd over time, or the devices of one type.
         */
        HerdSeries: {
            /** @description Mean number of devices in each state, per step. */
            devices: {
                [key: string]: (number | null)[];
            };
            end: number;
            /** @description Used share of all memory. */
            memory_ratio: (number | null)[];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            /** @description Sum over all devices that reported a value. */
            power_watts: (number | null)[];
            /** @enum {unknown} */
            resolution: "minute" | "quarter_hour" | "raw";
            start: number;
            step_seconds: number;
            times: number[];
            /** @description Short names of the types in this range. */
            types: string[];
            /** @description Mean over all devices that reported a value. */
            utilization_gpu: (number | null)[];
        };
        /**
         * HistoryHealth
         * @description State of the history.
         */
        HistoryHealth: {
            /**
             * @description Nothing more is recorded until there is space. The live view continues, and agents send their samples later.
             * @default false
             */
            is_closed?: boolean;
            journal: components["schemas"]["JournalHealth"];
            /**
             * @description Samples lost because the disk was full, from nodes that cannot send them again.
             * @default 0
             */
            lost_samples?: number;
            /**
             * @description Samples that could not be stored because the disk was full; agents send them again.
             * @default 0
             */
            sent_again_samples?: number;
            sinks: components["schemas"]["SinkHealth"][];
            /**
             * @description Samples that arrived too late: after 8 days, or `raw_days` if that is longer.
             * @default 0
             */
            too_old_samples?: number;
            /**
             * @description Samples whose usage could not be counted; the hub's log says why.
             * @default 0
             */
            uncounted_samples?: number;
            /**
             * @description Received and not yet written.
             * @default 0
             */
            waiting_bytes?: number;
        };
        /**
         * HostColumns
         * @description Nodes whose contact or host metrics have changed, by node row.
         */
        HostColumns: {
            cpu_ratio: (number | null)[];
            load_1m: (number | null)[];
            memory_used_mebibytes: (number | null)[];
            received_at: (number | null)[];
            row: number[];
        };
        /**
         * HostFacts
         * @description Inventory of the machine; sent when it changes.
         */
        HostFacts: {
            /** @default [] */
            addresses?: components["schemas"]["Address"][];
            /**
             * @description gpuherd version of the agent.
             * @default null
             */
            agent_version?: string | null;
            /**
             * @description Machine type, such as x86_64.
             * @default null
             */
            architecture?: string | null;
            /**
             * @description The kernel's id of this boot; setting the clock does not change it.
             * @default null
             */
            boot_id?: string | null;
            /**
             * @description When the machine started.
             * @default null
             */
            booted_at?: number | null;
            /**
             * @description Logical CPUs.
             * @default null
             */
            cpu_count?: number | null;
            /**
             * @description CPU model.
             * @default null
             */
            cpu_model?: string | null;
            /**
             * @description Newest CUDA version that the driver supports.
             * @default null
             */
            cuda_version?: string | null;
            /** @default [] */
            disks?: components["schemas"]["Disk"][];
            /**
             * @description GPU driver version.
             * @default null
             */
            driver_version?: string | null;
            /** @description Host name; shown, but never used as the node's identity. */
            hostname: string;
            /**
             * @description Kernel release.
             * @default null
             */
            kernel?: string | null;
            /**
             * @description Main memory.
             * @default null
             */
            memory_total_bytes?: number | null;
            /**
             * @description Distribution and release.
             * @default null
             */
            os?: string | null;
            /**
             * @description Swap space.
             * @default null
             */
            swap_total_bytes?: number | null;
        };
        /**
         * HostSample
         * @description Metrics of the machine at one moment.
         */
        HostSample: {
            /**
             * @description Share of all CPUs in use.
             * @default null
             */
            cpu_ratio?: number | null;
            /**
             * @description Load average over fifteen minutes.
             * @default null
             */
            load_15m?: number | null;
            /**
             * @description Load average over one minute.
             * @default null
             */
            load_1m?: number | null;
            /**
             * @description Load average over five minutes.
             * @default null
             */
            load_5m?: number | null;
            /**
             * @description Main memory that is not available.
             * @default null
             */
            memory_used_bytes?: number | null;
            /**
             * @description Swap in use.
             * @default null
             */
            swap_used_bytes?: number | null;
            /**
             * @description Time since the machine started.
             * @default null
             */
            uptime_seconds?: number | null;
        };
        /**
         * HostStateColumns
         * @description Nodes with changes in values that rarely change.
         */
        HostStateColumns: {
            clock_skew_seconds: (number | null)[];
            disks_used_bytes: (number | null)[][];
            interval_seconds: (number | null)[];
            reason: string[];
            row: number[];
            state: ("live" | "never" | "offline" | "stale")[];
            swap_used_bytes: (number | null)[];
            uptime_seconds: (number | null)[];
        };
        /**
         * HourMap
         * @description When the herd is busy: seven days by 24 hours, Monday first, in one time zone.
         */
        HourMap: {
            /** @description Share of busy devices, 7 lists of 24. */
            busy: (number | null)[][];
            end: number;
            /** @description Share of free devices. */
            free: (number | null)[][];
            /** @description Share of devices held idle. */
            held: (number | null)[][];
            /** @description Device-hours behind each share. */
            hours: number[][];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            start: number;
            zone: string;
        };
        /**
         * JournalHealth
         * @description State of the journal. While it fails, nodes get no acknowledgements and their samples are not stored.
         */
        JournalHealth: {
            /**
             * @description Entries that could not be read at the last start.
             * @default 0
             */
            damaged_records?: number;
            /** @default 0 */
            files?: number;
            /** @default null */
            last_error?: string | null;
            /** @default null */
            last_error_at?: number | null;
            /**
             * @description Devices or sessions left out because of that.
             * @default 0
             */
            lost_names?: number;
            /** @default 0 */
            size_bytes?: number;
            /** @enum {unknown} */
            state: "failing" | "ok";
            /**
             * @description Cut off at the last start; never acknowledged.
             * @default 0
             */
            torn_bytes?: number;
            /**
             * @description Hub time, UTC epoch seconds.
             * @default null
             */
            written_at?: number | null;
        };
        /**
         * KeptSession
         * @description A browser that is logged in.
         */
        KeptSession: {
            /** @description Name of the browser. */
            agent: string;
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description UTC epoch seconds. */
            expires_at: number;
            id: string;
            /** @description Whether it is the current session. */
            is_current: boolean;
            /** @description Address of the login. */
            peer: string;
            /** @description When it was last used, within about a minute. */
            seen_at: number;
        };
        /**
         * KeptToken
         * @description An API token, without its secret.
         */
        KeptToken: {
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description UTC epoch seconds. */
            expires_at: number;
            id: string;
            scopes: ("admin" | "book" | "read")[];
            /**
             * @description When it was last used, within about a minute; null: never.
             * @default null
             */
            seen_at?: number | null;
            title: string;
        };
        /**
         * LinkHealth
         * @description The nodes' connections.
         */
        LinkHealth: {
            /** @description Nodes that replace each other's connection: two machines share one credential. */
            flapping: string[];
            open: number;
            refused_credentials: number;
            /** @description Connections closed because the same node connected again. */
            replaced: number;
        };
        /**
         * LoadHealth
         * @description Whether the hub keeps up with the nodes.
         */
        LoadHealth: {
            /**
             * @description Nodes that currently use a longer interval.
             * @default 0
             */
            asked_nodes?: number;
            /**
             * @description How many times the hub has been overloaded since it started.
             * @default 0
             */
            episodes?: number;
            /**
             * @description The interval that agents are asked to use, as a multiple of their usual one.
             * @default 1
             */
            interval_stretch?: number;
            /**
             * @description Hub time, UTC epoch seconds. Null: the hub keeps up.
             * @default null
             */
            overloaded_since?: number | null;
            /**
             * @description How much later than usual the samples of most nodes are read.
             * @default 0
             */
            reading_seconds?: number;
            /**
             * @description Age of the oldest sample that is not written yet.
             * @default 0
             */
            writing_seconds?: number;
        };
        /**
         * LoginRequest
         * @description A name and a password.
         */
        LoginRequest: {
            /** @description As typed. */
            name: string;
            password: string;
        };
        /**
         * LoopHealth
         * @description One of the hub's own loops; each is restarted when it fails.
         */
        LoopHealth: {
            consecutive_errors: number;
            errors: number;
            last_error: string | null;
            last_error_at: number | null;
            last_success_at: number | null;
            name: string;
            /** @description Successful rounds since the hub started. */
            rounds: number;
            /** @enum {unknown} */
            state: "failing" | "ok" | "starting" | "stopped";
        };
        /**
         * MetricSeries
         * @description One metric over time; each list is as long as ``times`` of the response. ``low`` and ``high`` are minimum and
         *         maximum of the samples behind each point. For single samples, they equal ``mean``.
         */
        MetricSeries: {
            high: (number | null)[];
            low: (number | null)[];
            mean: (number | null)[];
        };
        /**
         * MissingPart
         * @description A period with missing data, or with data that is no longer stored.
         */
        MissingPart: {
            end: number;
            /** @description Such as: a file cannot be read; no longer stored. */
            reason: string;
            start: number;
        };
        /**
         * ModelTotals
         * @description How many devices of one model are in which state.
         */
        ModelTotals: {
            counts: {
                [key: string]: number;
            };
            memory_total_bytes: number | null;
            short_name: string;
        };
        /**
         * MonthlyReport
         * @description A month in the report's time zone, and the month before for comparison.
         */
        MonthlyReport: {
            by_day: components["schemas"]["UsageOverTime"];
            by_group: components["schemas"]["UsageReport"];
            by_node: components["schemas"]["UsageReport"];
            by_type: components["schemas"]["UsageReport"];
            by_user: components["schemas"]["UsageReport"];
            distribution: components["schemas"]["Distribution"];
            hours: components["schemas"]["HourMap"];
            /** @description False: the month is not over. */
            is_complete: boolean;
            month: string;
            previous: components["schemas"]["UsageFigures"] | null;
            zone: string;
        };
        /**
         * NamedGpu
         * @description A GPU of a node.
         */
        NamedGpu: {
            /** @description The vendor's unique id. */
            uuid: string;
        };
        /**
         * NodeFacts
         * @description Inventory of a node: the host and its devices, slices after their parent.
         */
        NodeFacts: {
            /** @default [] */
            devices?: components["schemas"]["DeviceFacts"][];
            host: components["schemas"]["HostFacts"];
        };
        /**
         * NodeHealth
         * @description Statistics of a node's frames since the hub started.
         */
        NodeHealth: {
            accepted: number;
            backfilled: number;
            dropped_by_agent: number;
            duplicates: number;
            last_error: string | null;
            last_error_at: number | null;
            /**
             * @description Samples that were lost because the disk was full, and that cannot be sent again.
             * @default 0
             */
            lost_samples?: number;
            missed: number;
            node_id: string;
            refused: {
                [key: string]: number;
            };
            unknown_frames: number;
            values_refused: number;
        };
        /**
         * NodeInventory
         * @description A node in the live stream: everything that is not a number. Sent again when any of it changes.
         */
        NodeInventory: {
            devices: components["schemas"]["DeviceInventory"][];
            host: components["schemas"]["HostFacts"] | null;
            id: string;
            name: string;
            /** @description The hub's remarks about the node, with hub times. */
            notes: components["schemas"]["Problem"][];
            /** @description Nodes are sorted by this, then by name. */
            place: number;
            /** @description Problems that the node reports, with node times. */
            problems: components["schemas"]["Problem"][];
            processes: components["schemas"]["Process"][];
            row: number;
            uses: components["schemas"]["ProcessUse"][];
            /** @enum {unknown} */
            way: "file" | "gpustat" | "http_files" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * NodeView
         * @description One node with its devices; ``host`` is null until its first report.
         */
        NodeView: {
            age_seconds: number | null;
            /** @description How far the node's clock is ahead of the hub's. */
            clock_skew_seconds: number | null;
            devices: components["schemas"]["DeviceView"][];
            disks_used_bytes: (number | null)[];
            host: components["schemas"]["HostFacts"] | null;
            host_sample: components["schemas"]["HostSample"];
            id: string;
            interval_seconds: number | null;
            /** @description Display name. */
            name: string;
            /** @description The hub's remarks about the node, with hub times. */
            notes: components["schemas"]["Problem"][];
            /** @description Problems that the node reports, with node times. */
            problems: components["schemas"]["Problem"][];
            reason: string;
            /** @description Hub time of the last live report. */
            received_at: number | null;
            /** @enum {unknown} */
            state: "live" | "never" | "offline" | "stale";
            /**
             * @description Connection: how its reports reach the hub.
             * @enum {unknown}
             */
            way: "file" | "gpustat" | "http_files" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * OwnCommands
         * @description All processes of the viewer, with full command lines: position i of every list belongs to one process. A
         *         process is identified by its node, pid and start.
         */
        OwnCommands: {
            command: (string | null)[];
            node_id: string[];
            pid: number[];
            started_at: (number | null)[];
        };
        /**
         * PasswordChange
         * @description A new password for your account.
         */
        PasswordChange: {
            /** @description At least ten characters. */
            new_password: string;
            old_password: string;
        };
        /**
         * PasswordLogin
         * @description Whether a name and password can be used.
         */
        PasswordLogin: {
            /** @description False: this page was loaded over plain HTTP from another machine, where others could read a password. POST would return 403 insecure. */
            is_taken_here: boolean;
        };
        /**
         * Problem
         * @description A problem that a node reports.
         */
        Problem: {
            /** @description Stable name: no_driver, no_gpu, driver_mismatch, driver_hung, driver_crashed, gpu_lost, reset_required, gpu_error, xid, recovery_action, remap_pending, remap_failed, retirement_pending, no_permission, driver_failed, slow_driver, too_many_devices, metric_failed, processes_failed, processes_hidden, host_failed; newer agents may add more. */
            code: string;
            /**
             * @description For code metric_failed: the metrics that are unknown because of it, such as memory_used_bytes or memory_total_bytes. Empty: it can be any unknown metric.
             * @default []
             */
            columns?: string[];
            /**
             * @description The device concerned; null for the whole node.
             * @default null
             */
            device_uuid?: string | null;
            /**
             * @description The device (or, if none is named, every device) must not be used.
             * @default false
             */
            is_fault?: boolean;
            /** @description What is wrong and what to do, for people. */
            message: string;
            /**
             * @description Node time of its first appearance.
             * @default null
             */
            since?: number | null;
            /**
             * @description For code xid: the number.
             * @default null
             */
            xid?: number | null;
        };
        /**
         * Process
         * @description A process, identified by pid and start time: a pid alone is reused.
         */
        Process: {
            /**
             * @description Command line, secrets removed on the node, shortened.
             * @default null
             */
            command?: string | null;
            /**
             * @description Container it runs in.
             * @default null
             */
            container?: string | null;
            /**
             * @description The driver still lists it, the operating system does not (or it is a zombie).
             * @default false
             */
            is_gone?: boolean;
            /**
             * @description Batch job it belongs to.
             * @default null
             */
            job?: string | null;
            /** @description Process id in the host's namespace. */
            pid: number;
            /**
             * @description When it started.
             * @default null
             */
            started_at?: number | null;
            /**
             * @description Owner; null if unknown.
             * @default null
             */
            user?: string | null;
        };
        /**
         * ProcessSample
         * @description CPU and memory of the host that a process uses at one moment.
         */
        ProcessSample: {
            /**
             * @description CPU in use; 1.0 is one core.
             * @default null
             */
            cpu_cores?: number | null;
            /**
             * @description Resident main memory.
             * @default null
             */
            memory_bytes?: number | null;
        };
        /**
         * ProcessTable
         * @description All processes on a node's devices; sent when it changes.
         */
        ProcessTable: {
            /**
             * @description Number of processes left out because there were too many.
             * @default 0
             */
            omitted?: number;
            /** @default [] */
            processes?: components["schemas"]["Process"][];
            /** @default [] */
            uses?: components["schemas"]["ProcessUse"][];
        };
        /**
         * ProcessUse
         * @description One process on one device; both by their position in the table and the device list.
         */
        ProcessUse: {
            /** @description Position in the device list. */
            device: number;
            /**
             * @description Compute work or graphics.
             * @default compute
             * @enum {unknown}
             */
            kind?: "compute" | "graphics";
            /** @description Position in the process table. */
            process: number;
        };
        /**
         * ProcessView
         * @description One process on one device.
         */
        ProcessView: {
            command: string | null;
            container: string | null;
            cpu_cores: number | null;
            gpu_memory_bytes: number | null;
            is_gone: boolean;
            job: string | null;
            /** @enum {unknown} */
            kind: "compute" | "graphics";
            memory_bytes: number | null;
            pid: number;
            /** @description UTC epoch seconds by the node's clock. */
            started_at: number | null;
            user: string | null;
            utilization_sm: number | null;
        };
        /**
         * RecentDevice
         * @description One device's last minutes; each list is as long as the view's ``times``.
         */
        RecentDevice: {
            clock_sm_hertz: (number | null)[];
            memory_used_bytes: (number | null)[];
            power_watts: (number | null)[];
            temperature_celsius: (number | null)[];
            utilization_gpu: (number | null)[];
        };
        /**
         * RecentHost
         * @description The host's last minutes; each list is as long as the view's ``times``.
         */
        RecentHost: {
            cpu_ratio: (number | null)[];
            memory_used_bytes: (number | null)[];
        };
        /**
         * RecentView
         * @description Metrics of a node in the last minutes, oldest first. Null: unknown, or the node was not live.
         */
        RecentView: {
            /** @description By the device's uuid; at most 64 of them. */
            devices: {
                [key: string]: components["schemas"]["RecentDevice"];
            };
            host: components["schemas"]["RecentHost"];
            /** @description Usual time between two points. */
            interval_seconds: number;
            node_id: string;
            /** @description UTC epoch seconds by the hub's clock. */
            times: number[];
        };
        /**
         * RedirectLogin
         * @description Single sign-on.
         */
        RedirectLogin: {
            /** @description Text of the button. */
            label: string;
            /** @description Address, relative to the hub's page; accepts ?return=PATH. */
            url: string;
        };
        /**
         * Renaming
         * @description What you can change in your own account.
         */
        Renaming: {
            /** @description Display name; empty: the account's name. */
            display_name: string;
        };
        /**
         * Report
         * @description Everything that a node reports at one moment.
         */
        Report: {
            facts: components["schemas"]["NodeFacts"];
            sample: components["schemas"]["Sample"];
            /** @default {} */
            table?: components["schemas"]["ProcessTable"];
        };
        /**
         * ReportReceipt
         * @description Node whose report was accepted.
         */
        ReportReceipt: {
            node_id: string;
        };
        /**
         * Sample
         * @description Metrics of a node at one moment; each tuple is aligned with the facts or the process table.
         */
        Sample: {
            /**
             * @description In the order of the facts' devices.
             * @default []
             */
            devices?: components["schemas"]["DeviceSample"][];
            /**
             * @description Space used, in the order of the host's disks.
             * @default []
             */
            disks_used_bytes?: (number | null)[];
            /** @default {} */
            host?: components["schemas"]["HostSample"];
            /** @default [] */
            problems?: components["schemas"]["Problem"][];
            /**
             * @description In the order of the table's processes.
             * @default []
             */
            processes?: components["schemas"]["ProcessSample"][];
            /** @description The node's own clock. */
            time: number;
            /**
             * @description In the order of the table's uses.
             * @default []
             */
            uses?: components["schemas"]["UseSample"][];
        };
        /**
         * SeriesView
         * @description Numbers over a range of time, on a grid of equal steps, oldest first.
         */
        SeriesView: {
            end: number;
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            /**
             * @description Lowest resolution of the data behind the points.
             * @enum {unknown}
             */
            resolution: "minute" | "quarter_hour" | "raw";
            start: number;
            /** @description Time between two points; each stands for its whole step. */
            step_seconds: number;
            subjects: components["schemas"]["SubjectSeries"][];
            /** @description Start of each step, UTC epoch seconds by the hub's clock. */
            times: number[];
        };
        /**
         * SessionView
         * @description Who you are, what you can see, and how you can log in.
         */
        SessionView: {
            /** @description Null: nobody is logged in. */
            account: components["schemas"]["Account"] | null;
            /**
             * @description True: the database is empty although this hub has had nodes or accounts; an admin has to restore a backup or start afresh.
             * @default false
             */
            are_records_missing?: boolean;
            bookings_enabled: boolean;
            /** @description Whether the account has a password on this hub that you can change. */
            has_password: boolean;
            /** @description False: nobody can log in until the set-up link is used. */
            is_set_up: boolean;
            password: components["schemas"]["PasswordLogin"];
            /** @description Privacy class; null: nothing is visible. */
            privacy: ("admin" | "counts" | "member" | "names" | "public") | null;
            /** @description Null: not available. */
            redirect: components["schemas"]["RedirectLogin"] | null;
            /** @description What this session or token allows, sorted. */
            scopes: ("admin" | "book" | "read")[];
            /**
             * @description How the account was recognised.
             * @enum {unknown}
             */
            via: "nobody" | "proxy" | "session" | "token";
            /** @description IANA time zone of times without one. */
            zone: string;
        };
        /**
         * SetupRequest
         * @description The first admin.
         */
        SetupRequest: {
            /** @description The code after the # of the set-up link. */
            code: string;
            /**
             * @description Display name. Default: the name.
             * @default null
             */
            display_name?: string | null;
            /** @description Name to log in with. */
            name: string;
            /** @description At least ten characters. */
            password: string;
        };
        /**
         * SinkHealth
         * @description State of a sink.
         */
        SinkHealth: {
            /**
             * @description Files that were found damaged in the last 30 days and moved to quarantine.
             * @default 0
             */
            damaged_files?: number;
            /** @default null */
            last_error?: string | null;
            /** @default null */
            last_error_at?: number | null;
            name: string;
            /**
             * @description UTC epoch seconds of the oldest stored data.
             * @default null
             */
            oldest?: number | null;
            /** @default null */
            size_bytes?: number | null;
            /** @enum {unknown} */
            state: "behind" | "failing" | "ok";
            /**
             * @description Data that can no longer be read.
             * @default []
             */
            unreadable?: components["schemas"]["MissingPart"][];
            /**
             * @description Received, and not yet stored in their final place.
             * @default 0
             */
            waiting_batches?: number;
        };
        /**
         * StateSpan
         * @description A period in which a device was in one state. For summaries, the state that it had for most of each step.
         */
        StateSpan: {
            end: number;
            start: number;
            state: string;
        };
        /**
         * StoreHealth
         * @description Whether the hub saves what nodes send. If not, nodes get no acknowledgements and send it again.
         */
        StoreHealth: {
            last_error: string | null;
            saved_at: number | null;
            /** @enum {unknown} */
            state: "failing" | "ok";
            /** @description Nodes with data that is not saved yet. */
            waiting_nodes: number;
        };
        /**
         * SubjectSeries
         * @description One device or host over time.
         */
        SubjectSeries: {
            /**
             * @description By metric, such as power_watts.
             * @default {}
             */
            metrics?: {
                [key: string]: components["schemas"]["MetricSeries"];
            };
            node_id: string;
            /**
             * @description For a device; gaps have no entry.
             * @default []
             */
            states?: components["schemas"]["StateSpan"][];
            /**
             * @description UUID of a device; null for the host itself.
             * @default null
             */
            uuid?: string | null;
        };
        /**
         * TemporaryPassword
         * @description A generated password.
         */
        TemporaryPassword: {
            /** @description Shown only once; the person should change it. */
            password: string;
        };
        /**
         * TimeChoice
         * @description One reading of an ambiguous time.
         */
        TimeChoice: {
            /** @description UTC, whole seconds. */
            at: number;
            /** @description ISO 8601 with its offset; send this instead. */
            text: string;
        };
        /**
         * TimelineBooking
         * @description One bar of the timeline, over one or more lines.
         */
        TimelineBooking: {
            /** @description Positions in the timeline's devices. */
            devices: number[];
            /** @description UTC, whole seconds. */
            ends_at: number;
            group: string | null;
            holder: string;
            id: number;
            is_own: boolean;
            may_edit: boolean;
            revision: number;
            series_id: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
            /** @enum {unknown} */
            state: "active" | "cancelled" | "pending" | "refused";
            title: string;
        };
        /**
         * TimelineDevice
         * @description One line of the timeline.
         */
        TimelineDevice: {
            index: number | null;
            /** @description No node reports it any more, but it is booked. */
            is_gone: boolean;
            /** @description Cannot be booked. */
            is_quiet: boolean;
            node_id: string;
            node_name: string;
            parent_index: number | null;
            short_name: string | null;
            uuid: string;
        };
        /**
         * TimelineView
         * @description Devices × time: every booking of a device in a range, once.
         */
        TimelineView: {
            /** @description Pending and active ones, by start. */
            bookings: components["schemas"]["TimelineBooking"][];
            /** @description In the order of the page; GPUs that are split appear as slices. */
            devices: components["schemas"]["TimelineDevice"][];
            /** @description False while the database does not respond: bookings are the last known ones. */
            is_current: boolean;
            /** @description UTC, whole seconds. */
            since: number;
            /** @description The hub's time, UTC epoch seconds. */
            time: number;
            /** @description UTC, whole seconds. */
            until: number;
        };
        /**
         * TokenRequest
         * @description A token to create.
         */
        TokenRequest: {
            /**
             * @description How long it is valid.
             * @default 90
             */
            days?: number;
            /** @description read: view; book: make and change bookings; admin: everything an admin can do. Within the account's role. */
            scopes: ("admin" | "book" | "read")[];
            /** @description What it is for. */
            title: string;
        };
        /**
         * Totals
         * @description Totals of the herd. A split GPU is counted as its slices, not twice.
         */
        Totals: {
            /** @description GPUs and slices together. */
            devices: {
                [key: string]: number;
            };
            models: components["schemas"]["ModelTotals"][];
            nodes: {
                [key: string]: number;
            };
            /**
             * @description Live nodes without a usable GPU: the driver hangs, or all are missing or in fault.
             * @default 0
             */
            nodes_in_fault?: number;
            /** @description Those of `devices` that are slices (MIG). */
            slices: {
                [key: string]: number;
            };
        };
        /**
         * TrendRow
         * @description What one user holds now and held recently: who to ask.
         */
        TrendRow: {
            /** @description Of these, held idle. */
            idle_gpus: number;
            label: string;
            mean_1w: number;
            mean_24h: number;
            /** @description Moving average of used GPUs, with a time constant of 2 hours. */
            mean_2h: number;
            /** @description GPUs booked right now; in the row of free ones, GPUs that nobody has booked. */
            reserved_gpus: number;
            /**
             * @description Trend: the 2-hour average compared with the 24-hour average.
             * @enum {unknown}
             */
            trend: "down" | "level" | "up";
            /**
             * @description Current use compared with the average of a week.
             * @enum {unknown}
             */
            trend_1w: "down" | "level" | "up";
            /**
             * @description Current use compared with the 24-hour average.
             * @enum {unknown}
             */
            trend_24h: "down" | "level" | "up";
            /**
             * @description Current use compared with the 2-hour average.
             * @enum {unknown}
             */
            trend_2h: "down" | "level" | "up";
            /** @description GPUs held now; shared ones count by their share of memory. */
            used_gpus: number;
            /** @description Null: unknown. */
            user: string | null;
        };
        /**
         * TrendsView
         * @description Who to ask for a GPU: users who hold most come first.
         */
        TrendsView: {
            /**
             * @description Until then, the averages are those of an older page (`usage.earlier`). Null: gpuherd's own.
             * @default null
             */
            earlier_until?: number | null;
            /** @description The GPUs that nobody uses, in the same format. */
            free: components["schemas"]["TrendRow"];
            rows: components["schemas"]["TrendRow"][];
            time: number;
        };
        /**
         * UsageFigures
         * @description Usage in numbers. The time of a shared GPU is divided among its users by the memory they hold. ``busy + idle
         *         + unknown = gpu_hours``.
         */
        UsageFigures: {
            /** @description Of these, busy: at or above availability.busy_utilization. */
            busy_hours: number;
            /**
             * @description Based on the prices in [usage]; null if there are none.
             * @default null
             */
            cost?: number | null;
            /** @description Busy share of the hours with known utilisation; null if there are none. */
            efficiency: number | null;
            /** @description Null if no device reported its power. */
            energy_kwh: number | null;
            /** @description GPUs held × hours; slices count as their share of the GPU. */
            gpu_hours: number;
            /**
             * @description Cost of the idle hours, based on the price of a GPU-hour; null without one.
             * @default null
             */
            idle_cost?: number | null;
            /** @description Of these, held idle: the waste. */
            idle_hours: number;
            /** @description Mean utilisation while held; null if unknown. */
            mean_utilization: number | null;
            memory_gib_hours: number;
            /** @description Of these, with unknown utilisation. */
            unknown_hours: number;
        };
        /**
         * UsageOverTime
         * @description The largest users, groups, nodes, types or jobs per step; all others together come last.
         */
        UsageOverTime: {
            busy_hours: number[][];
            /** @enum {unknown} */
            by: "device" | "group" | "job" | "node" | "type" | "user";
            end: number;
            /** @description For each key, one number per step. */
            gpu_hours: number[][];
            /** @description Null: unknown. */
            keys: (string | null)[];
            labels: string[];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            others_busy_hours: number[];
            others_gpu_hours: number[];
            start: number;
            /** @enum {unknown} */
            step: "day" | "hour" | "month" | "week";
            /** @description Start of each step in the report's time zone, UTC epoch seconds. */
            times: number[];
        };
        /**
         * UsageReport
         * @description Who or what used how much of the herd in a range, most first.
         */
        UsageReport: {
            /** @default null */
            bookings?: components["schemas"]["BookingUsage"] | null;
            /** @enum {unknown} */
            by: "device" | "group" | "job" | "node" | "type" | "user";
            /**
             * @description Available GPU-hours of the herd: reported and without a fault.
             * @default null
             */
            capacity_hours?: number | null;
            /** @default null */
            currency?: string | null;
            end: number;
            /**
             * @description Of these, used by nobody.
             * @default null
             */
            free_hours?: number | null;
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            /**
             * @description Number of rows beyond the limit; the totals include them.
             * @default 0
             */
            omitted_rows?: number;
            rows: components["schemas"]["UsageRow"][];
            /** @description The range as it was counted: in steps of 15 minutes, older in hours. */
            start: number;
            totals: components["schemas"]["UsageFigures"];
        };
        /**
         * UsageRow
         * @description The usage of one user, group, node, type, job or device.
         */
        UsageRow: {
            /**
             * @description By user, group, node, type and device.
             * @default null
             */
            bookings?: components["schemas"]["BookingUsage"] | null;
            devices: number;
            figures: components["schemas"]["UsageFigures"];
            /** @description Name or id; null: the owner is unknown. */
            key: string | null;
            /** @description Display name. */
            label: string;
            sessions: number;
            users: number;
        };
        /**
         * UsageSession
         * @description A session of a user on one device.
         */
        UsageSession: {
            /**
             * @description In full for the user and admins, while it is stored; otherwise the program's name.
             * @default null
             */
            command?: string | null;
            /** @default null */
            container?: string | null;
            /**
             * @description The device, as `gpu01/3`; null if it is gone.
             * @default null
             */
            device?: string | null;
            /** @description Null: still running. */
            ended_at: number | null;
            figures: components["schemas"]["UsageFigures"];
            id: string;
            /** @default null */
            job?: string | null;
            last_seen_at: number;
            /** @description Display name of the node. */
            node: string;
            node_id: string;
            started_at: number;
            /** @description Short name of the device's type. */
            type: string;
            /** @description Null: unknown. */
            user: string | null;
            uuid: string;
        };
        /**
         * UsageSessions
         * @description Sessions on devices in a range, latest first.
         */
        UsageSessions: {
            end: number;
            /** @description False: there are more than the limit. */
            is_complete: boolean;
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            sessions: components["schemas"]["UsageSession"][];
            start: number;
        };
        /**
         * UseColumns
         * @description Process metrics that have changed: ``position[i]`` is the position in the uses of node row ``node[i]``.
         */
        UseColumns: {
            cpu_cores: (number | null)[];
            gpu_memory_bytes: (number | null)[];
            memory_bytes: (number | null)[];
            node: number[];
            position: number[];
            utilization_sm: (number | null)[];
        };
        /**
         * UseSample
         * @description What a process uses on one device at one moment.
         */
        UseSample: {
            /**
             * @description Device memory held.
             * @default null
             */
            gpu_memory_bytes?: number | null;
            /**
             * @description Share of the SMs' time, if the driver reports it.
             * @default null
             */
            utilization_sm?: number | null;
        };
        /**
         * UserSeries
         * @description What one user held and used over time.
         */
        UserSeries: {
            /** @description Of these, busy. */
            busy_gpus: (number | null)[];
            end: number;
            /** @description Mean number of GPUs held; shared ones count by share. */
            held_gpus: (number | null)[];
            /** @description Mean device memory held. */
            memory_bytes: (number | null)[];
            power_watts: (number | null)[];
            start: number;
            step_seconds: number;
            times: number[];
            user: string;
        };
        /**
         * UserView
         * @description What one user holds now; a null user stands for processes whose owner is unknown.
         */
        UserView: {
            busy_devices: number;
            devices: components["schemas"]["DevicePlace"][];
            gpu_memory_bytes: number;
            held_devices: number;
            processes: number;
            user: string | null;
        };
        /**
         * ViewerHealth
         * @description The live streams.
         */
        ViewerHealth: {
            limit: number;
            open: number;
            /** @description Snapshots sent to viewers too slow for every change. */
            resyncs: number;
        };
        /**
         * Weekly
         * @description Repeat every week at the same local time; all weeks or none.
         */
        Weekly: {
            /** @description Total number. */
            times: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    changeOwnAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Renaming"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    eraseOwnAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ErasureRequest"];
            };
        };
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": null;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exportOwnAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountExport"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listFeeds: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FeedView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createFeed: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FeedRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedFeed"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    endFeed: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The calendar's id. */
                feed_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    changePassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordChange"];
            };
        };
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listOwnSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeptSession"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    endOtherSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    endOwnSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeptToken"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    endToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The token's id. */
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listAccounts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedAccount"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    eraseAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    changeAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountChange"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Account"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    exportAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountExport"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    resetPassword: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TemporaryPassword"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    endSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                account_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    agentLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection is open. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not a WebSocket handshake. */
            426: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    searchAudit: {
        parameters: {
            query?: {
                /** @description Text anywhere in an entry, including names of people. */
                text?: string | null;
                /** @description Such as login.failed, or booking for all actions on bookings. */
                action?: string | null;
                /** @description Id of an account: what it did, or what was done to it. */
                account?: string | null;
                /** @description Start; UTC epoch seconds. */
                since?: number | null;
                /** @description End; UTC epoch seconds. */
                until?: number | null;
                /** @description Only those with a lower number, for paging. */
                before?: number | null;
                /** @description Maximum number. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEntry"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getBookingPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingPolicy"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listBookings: {
        parameters: {
            query?: {
                /** @description Only yours and those of your groups. */
                mine?: boolean;
                /** @description Only those of this node's devices, by its id. */
                node?: string | null;
                /** @description Only those of this device: `gpu01/3` or its UUID. */
                device?: string | null;
                /** @description Only those that end after this; UTC epoch seconds. */
                since?: number | null;
                /** @description Only those that start before this; UTC epoch seconds. */
                until?: number | null;
                /** @description Only those in this state; may be repeated. Default: active and pending. */
                state?: ("active" | "pending" | "cancelled" | "refused")[] | null;
                /** @description Only those of this weekly series. */
                series?: number | null;
                /** @description Only those with a lower number, for paging. */
                before?: number | null;
                /** @description Maximum number. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    createBooking: {
        parameters: {
            query?: never;
            header?: {
                /** @description A random string, new for each booking. A request that is repeated with the same key within 24 hours books only once and returns the same booking. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BookingRequest"];
            };
        };
        responses: {
            /** @description A dry run: what would be booked. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"][];
                };
            };
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    changeBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BookingChange"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    approveBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Decision"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    cancelBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Cancellation"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    copyBooking: {
        parameters: {
            query?: never;
            header?: {
                /** @description A random string, new for each booking. A request that is repeated with the same key within 24 hours books only once and returns the same booking. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CopyRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    extendBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Extension"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    refuseBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Decision"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    releaseBooking: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The booking's number. */
                booking_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BookingView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    readCalendar: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The calendar's secret and .ics. */
                file_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/calendar": string;
                };
            };
            /** @description Not changed: If-None-Match matches its ETag. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    enroll: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnrolmentRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnrolmentResult"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getFleet: {
        parameters: {
            query?: {
                /** @description Only nodes with this id, name or host name. If there is none, those with the same part before the first dot. If more than 100 match, all nodes. */
                node?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FleetView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getGlance: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Glance"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listGpus: {
        parameters: {
            query?: {
                /** @description Only devices in this state; may be repeated. */
                state?: ("free" | "busy" | "held" | "booked" | "fault" | "stale" | "offline" | "unknown")[] | null;
                /** @description Only devices of the node with this id; may be repeated. */
                node?: string[] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"] | components["schemas"]["HealthSummary"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getDeviceHistory: {
        parameters: {
            query: {
                /** @description A device: `gpu01/3`, or node id, colon, UUID; may be repeated. */
                device: string[];
                /** @description May be repeated; default: utilization_gpu. Known: utilization_gpu, utilization_memory, utilization_encoder, utilization_decoder, memory_used_bytes, memory_reserved_bytes, temperature_celsius, power_watts, power_limit_watts, fan_ratio, clock_sm_hertz, clock_memory_hertz, performance_state, throttle_reasons, ecc_corrected, ecc_uncorrected, energy_joules, pcie_receive_bytes_per_second, pcie_send_bytes_per_second. */
                metric?: string[] | null;
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Maximum number of points; fewer for large requests. */
                points?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SeriesView"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getHerdHistory: {
        parameters: {
            query?: {
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Maximum number of points; fewer for large requests. */
                points?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HerdSeries"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getHostHistory: {
        parameters: {
            query?: {
                /** @description May be repeated; default: cpu_ratio. Known: cpu_ratio, load_1m, load_5m, load_15m, memory_used_bytes, swap_used_bytes, uptime_seconds. In public only those that the live view shows. */
                metric?: string[] | null;
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Maximum number of points; fewer for large requests. */
                points?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path: {
                /** @description The node's id. */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SeriesView"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUserHistory: {
        parameters: {
            query?: {
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Maximum number of points; fewer for large requests. */
                points?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path: {
                /** @description The user as shown; for the public, a pseudonym. */
                user: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserSeries"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    startRedirectLogin: {
        parameters: {
            query?: {
                /** @description Where to go afterwards: a path on this host. */
                return?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Object moved temporarily -- see URI list */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": null;
                };
            };
            /** @description Not configured on this hub. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    finishRedirectLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Object moved temporarily -- see URI list */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": null;
                };
            };
            /** @description Not configured on this hub. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listNodes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getNode: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The node's id. */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    acknowledgeGpu: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The node's id. */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NamedGpu"];
            };
        };
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcknowledgedFaults"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    forgetGpu: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The node's id. */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NamedGpu"];
            };
        };
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getRecent: {
        parameters: {
            query?: {
                /** @description Only the device with this UUID; may be repeated. */
                device?: string[] | null;
            };
            header?: never;
            path: {
                /** @description The node's id. */
                node_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecentView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    postReport: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Report"];
            };
        };
        responses: {
            /** @description Request accepted, processing continues off-line */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportReceipt"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, nothing follows */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": null;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    setUp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetupRequest"];
            };
        };
        responses: {
            /** @description Document created, URL follows */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    findSlots: {
        parameters: {
            query?: {
                /** @description How many devices. */
                count?: number;
                /** @description Words that their names must contain, such as A100 80GB. */
                model?: string | null;
                /** @description Minimum memory of each device. */
                min_memory_bytes?: number | null;
                /** @description Duration without a break. */
                hours?: number;
                /** @description All on one node. */
                same_node?: boolean;
                /** @description Earliest start, UTC epoch seconds. Default: now. */
                since?: number | null;
                /** @description Maximum number of slots. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FreeSlot"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    stream: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events: first `snapshot`, then a `change` per tick, each a FleetChange. If you are logged in, also `own`, an OwnCommands, after the snapshot and whenever it changes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["FleetChange"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getTimeline: {
        parameters: {
            query?: {
                /** @description Start of the range, UTC epoch seconds. Default: a day ago. */
                since?: number | null;
                /** @description End of the range, UTC epoch seconds. Default: 8 days later. At most 400 days. */
                until?: number | null;
                /** @description Only devices of the node with this id; may be repeated. */
                node?: string[] | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TimelineView"];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /** @description Group rows by. */
                by?: "user" | "group" | "node" | "type" | "job" | "device";
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Only this user, as shown; for the public, a pseudonym. */
                user?: string | null;
                /** @description Only members of this group. */
                group?: string | null;
                /** @description Only this node, by its id. */
                node?: string | null;
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description Only this batch job. */
                job?: string | null;
                /** @description Only this device: `gpu01/3` or its UUID. */
                device?: string | null;
                /** @description Maximum number of rows. */
                limit?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageReport"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUtilizationDistribution: {
        parameters: {
            query?: {
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Distribution"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getBusyHours: {
        parameters: {
            query?: {
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description IANA time zone of days and hours. Default: the hub's. */
                zone?: string | null;
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HourMap"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getMonth: {
        parameters: {
            query?: {
                /** @description IANA time zone of days and hours. Default: the hub's. */
                zone?: string | null;
                /** @description JSON, Markdown, or a self-contained HTML page. */
                format?: "json" | "markdown" | "html";
            };
            header?: never;
            path: {
                /** @description Such as 2026-10. */
                month: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MonthlyReport"];
                    "text/html": string;
                    "text/markdown": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUsageOverTime: {
        parameters: {
            query?: {
                /** @description Group rows by. */
                by?: "user" | "group" | "node" | "type" | "job" | "device";
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Length of a step. */
                step?: "hour" | "day" | "week" | "month";
                /** @description How many to list; the rest is summed up. */
                top?: number;
                /** @description IANA time zone of days and hours. Default: the hub's. */
                zone?: string | null;
                /** @description Only this user, as shown; for the public, a pseudonym. */
                user?: string | null;
                /** @description Only members of this group. */
                group?: string | null;
                /** @description Only this node, by its id. */
                node?: string | null;
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description Only this batch job. */
                job?: string | null;
                /** @description Only this device: `gpu01/3` or its UUID. */
                device?: string | null;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageOverTime"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUsageSessions: {
        parameters: {
            query?: {
                /** @description Start: UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, in the same formats; a day includes its end. Default: now. */
                to?: string | null;
                /** @description Only this user, as shown; for the public, a pseudonym. */
                user?: string | null;
                /** @description Only members of this group. */
                group?: string | null;
                /** @description Only this node, by its id. */
                node?: string | null;
                /** @description Only devices of this type, by short name. */
                type?: string | null;
                /** @description Only this batch job. */
                job?: string | null;
                /** @description Only this device: `gpu01/3` or its UUID. */
                device?: string | null;
                /** @description Maximum number. */
                limit?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageSessions"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    getUsageTrends: {
        parameters: {
            query?: {
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrendsView"];
                    "text/csv": string;
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Request fulfilled, document follows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserView"][];
                };
            };
            /** @description Error; the body says why. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
}
