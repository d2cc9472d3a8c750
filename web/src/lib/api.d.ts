// Generated from OpenAPI 74049ca7e78cde3bf5bafd52431228a0faa34c1c4b509cabb61a8c66d35e7cb3 by `npm run generate`; do not edit.
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
         * Change one's account
         * @description Change what others read as one's name. All else is for admins.
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
         * Have oneself forgotten
         * @description Delete one's account, keys and calendars; bookings lose the name, those ahead are cancelled.
         *
         *     403 ``password_wrong``. 409 ``last_admin``: somebody must be left to administer the hub. 422 ``name_wrong``.
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
         * Everything that is kept about oneself
         * @description Account, sessions, tokens, calendars, bookings and the audit log's entries about oneself, as one file.
         *
         *     429 ``export_running``: one at a time.
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
         * One's calendars
         * @description Every calendar of one's own, the newest first; never their addresses.
         */
        get: operations["listFeeds"];
        put?: never;
        /**
         * Make a calendar
         * @description Make a calendar of bookings that any calendar program can read by its secret address.
         *
         *     The hub keeps only a digest of it, so it is shown this once. 422 ``unknown_device``; 409 ``too_many_feeds``.
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
         * @description Void a calendar's address at once. 404: one has none with this id.
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
         * Change one's password
         * @description All tokens and all other sessions of the account end.
         *
         *     403 ``password_wrong``: the old one is not right. 422 ``password_weak``: the new one will not do. 409
         *     ``password_elsewhere``: another service keeps it.
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
         * Where one is logged in
         * @description Every browser that is logged in as oneself, the newest first.
         */
        get: operations["listOwnSessions"];
        put?: never;
        post?: never;
        /**
         * Log out everywhere else
         * @description End all of one's sessions but this one.
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
         * @description End one of one's sessions. 404: one has none with this id.
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
         * One's API tokens
         * @description Every valid token of one's own, the newest first; never their secrets.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Make an API token
         * @description Make a key for a program. The hub keeps only its digest, so it is shown this once.
         *
         *     422 ``scope_needs_role``: more than one may oneself. 409 ``too_many_tokens``.
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
         * @description Void a token at once. 404: one has none with this id.
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
         * @description Everyone who can log in, and those who are disabled.
         */
        get: operations["listAccounts"];
        put?: never;
        /**
         * Make an account
         * @description Make a local account. Unless a password is given, one is made up and told in the answer, this once.
         *
         *     400 ``name_invalid``. 409 ``name_taken``, ``linux_name_taken``. 422 ``password_weak``.
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
         * Forget a person
         * @description Delete an account, its keys and calendars; bookings lose the name, those ahead are cancelled.
         *
         *     To keep someone out without losing anything, change ``is_disabled`` instead. 409 ``last_admin``.
         */
        delete: operations["eraseAccount"];
        options?: never;
        head?: never;
        /**
         * Change an account
         * @description Change role, groups, names, or keep someone out. Open streams of the person end at once.
         *
         *     A token may neither change a role nor let someone in again: 403 ``forbidden``.
         *     409 ``last_admin``: somebody must be left to administer the hub; ``linux_name_taken``.
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
         * Everything that is kept about a person
         * @description Account, sessions, tokens, calendars, bookings and the audit log's entries about a person, as one file.
         *
         *     429 ``export_running``: one at a time.
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
         * @description Make up a new password, told in the answer this once. Sessions, tokens and calendars of the person end.
         *
         *     409 ``password_elsewhere``: another service keeps it.
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
         * @description Entries that match all that is asked for, the newest first. For the next page, give the last one's number as
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
         * What I may book
         * @description One's own limits, and how much of them is used.
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
         * @description Bookings, the newest first. For the next page, give the last one's number as ``before``.
         */
        get: operations["listBookings"];
        put?: never;
        /**
         * Book
         * @description Book devices, all or none; a weekly booking gives one for each week.
         *
         *     With ``dry_run`` nothing is booked and the status is 200. 409 ``conflict``: something is booked already; the
         *     error lists what is in the way and when all would be free. 422: a field cannot be taken; ``path`` names it.
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
         * @description One booking, whatever its state. 404: there is none with this number.
         */
        get: operations["getBooking"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a booking
         * @description Change a booking as one whole. 409 ``past``: it is over; ``changed_meanwhile``: read it again first.
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
         * @description Let a pending booking stand. 409 ``changed_meanwhile``: it is not what was read; look at it again.
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
         * @description Cancel one that has not begun, or with ``series`` this one and all later ones of its weekly series.
         *
         *     Of a running one only the later ones can be cancelled; release it. The answer is what was cancelled.
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
         * @description Book the same devices at another time, for oneself; also those of a booking of someone else.
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
         * @description Give a booking a later end, within what one may book.
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
         * @description Turn a pending booking down; its devices are free again. 409 ``changed_meanwhile``: see approve.
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
         * @description Give devices back: one that runs ends now, one that has not begun is cancelled.
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
         * @description Bookings in iCalendar form (RFC 5545), up to a year back.
         *
         *     The address itself is the key: no login is asked for. It ends with its owner's account, and when its owner ends
         *     it. 404: nobody has this address.
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
         * Become a node
         * @description Exchange a join token for a credential of this node's own.
         *
         *     403: the token is unknown, spent or expired. 409: the name is taken, or the credential is another node's.
         *     429: too many failed attempts.
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
         * @description All nodes with their devices, processes and totals, as of the last tick. For scripts: the page reads
         *     the stream. Of a large herd, name the node that matters: each is some 10 KB.
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
         * What is free, and who has what
         * @description All nodes and devices with their states, users and bookings, as columns, as of the last tick.
         *
         *     A seventh of what ``GET /fleet`` tells, and a twentieth with ``Accept-Encoding: gzip``: for whoever asks often,
         *     or for a herd of thousands. Command lines and whatever a look does not show are left out.
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
         * @description Every GPU and slice with its availability, numbers and processes.
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
         * How the hub is doing
         * @description Status with reasons, every loop, the store, links, viewers, and how each node's frames fare.
         *
         *     The answer is 200 as long as the hub can answer at all; look at ``status``. Who sees no names sees nothing but
         *     that, and errors of the hub's own parts are for admins.
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
         * @description Numbers of devices on one grid of equal steps, with the state that each was in.
         *
         *     Null is a gap: nothing is known of that step. Each point stands for its whole step; what it was made of is told
         *     in ``resolution``, and what should be there and is not in ``missing``.
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
         * @description How many devices were in which state, and how busy all were together; all or those of one type.
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
         * @description Numbers of a node's host, as those of devices. Nodes that are gone are remembered.
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
         * @description How many GPUs someone held, in steps of a quarter of an hour or more. Nobody of this name held none.
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
         * @description For browsers: leads to the provider, which sends them back to the callback.
         *
         *     If the provider is down, back to the login form, which says so.
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
         * Come back from single sign-on
         * @description For browsers that come back from the provider: logs in and leads to the page.
         *
         *     If that does not work, to the login form, which says why.
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
         * @description Every enrolled node, also those that have never reported.
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
    "/api/v1/nodes/{node_id}/recent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A node's last minutes
         * @description The last 15 minutes of a node and its devices, one moment each 5 seconds.
         *
         *     Null is unknown, also where the node was not live. For what comes next, follow the stream.
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
         * @description Take a report of the node whose credential is in ``Authorization: Bearer``.
         *
         *     The report never says whose it is: a node speaks only for itself. Repeating a report is harmless.
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
         * Who am I
         * @description Who asks, what is shown to them, and how one can log in.
         */
        get: operations["getSession"];
        put?: never;
        /**
         * Log in
         * @description Log in with a name and password; the answer sets a cookie.
         *
         *     401 ``login_failed``: the name or the password is wrong. 403 ``insecure``: passwords are not taken over plain
         *     HTTP. 429: too many attempts, from there or altogether.
         */
        post: operations["logIn"];
        /**
         * Log out
         * @description End this session and have the browser forget its cookie. For nobody it does nothing.
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
         * @description Make the first admin and log in as such; the answer sets a cookie.
         *
         *     403 ``code_invalid``: the link is unknown, spent or expired; `gpuherd hub setup-link` prints a new one. 409
         *     ``setup_done``: there is an admin. 403 ``insecure``: passwords are not taken over plain HTTP.
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
         * @description The next spans in which so many devices are not booked, the earliest first.
         *
         *     What runs on them unbooked does not count, faults do: devices at fault, offline or kept out of booking are
         *     not offered.
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
         * @description Everything that the viewer may see once, then what changed, tick by tick.
         *
         *     It ends when the session or token does, or the account is changed: then connect again.
         *     A viewer too slow for every change gets a new snapshot instead. With ``Accept-Encoding: gzip`` the
         *     stream is compressed. 503: too many viewers.
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
         * @description Every device, and every active or pending booking that holds one of them within a span.
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
         * @description GPU-hours held, worked and wasted, energy and cost in a range, the largest first.
         *
         *     The range is counted in quarters of an hour, further back in hours, and widened to whole ones; ``start`` and
         *     ``end`` tell the range that was counted. A GPU that several share is split between them.
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
         * How well devices in use worked
         * @description Device-hours by utilisation, of devices that someone was on.
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
         * @description The share of devices at work, held and free, for each hour of the week in a time zone.
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
         * A month's report
         * @description A month in a time zone by user, group, type and node, with the month before it to compare.
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
         * Who used how much, step by step
         * @description The largest of a range, hour by hour, day by day, week by week or month by month in a time zone.
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
         * Who was on which device when
         * @description Stays on devices that touch a range, the latest first.
         *
         *     Begin and end are those of the stay, figures as far as it lies in the range. Command lines are for who ran them
         *     and for admins, as long as they are kept; that admins read those of others is in the audit log.
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
         * Whom to ask for a GPU
         * @description What everyone holds now and held lately, those who hold most first.
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
         * @description Everyone with a process on a device right now.
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
            /** @description What others read; the name if nothing else is known. */
            display_name: string;
            /**
             * @description Sorted.
             * @default []
             */
            groups?: string[];
            /** @description Given by the hub; never used again for someone else. */
            id: string;
            /** @default false */
            is_disabled?: boolean;
            /**
             * @description UTC epoch seconds.
             * @default null
             */
            last_login_at?: number | null;
            /**
             * @description Users on the nodes that are this person; sorted.
             * @default []
             */
            linux_names?: string[];
            /** @description What the person types to log in. */
            name: string;
            /** @enum {unknown} */
            role: "admin" | "member" | "viewer";
            /**
             * @description Who vouches for the person.
             * @default local
             * @enum {unknown}
             */
            source?: "ldap" | "local" | "oidc" | "pam" | "proxy";
        };
        /**
         * AccountChange
         * @description What an admin changes of an account; what is not given stays.
         */
        AccountChange: {
            /** @description What others read. */
            display_name?: string;
            /** @description All groups, instead of those before. */
            groups?: string[];
            /** @description Whether the person is kept out, without anything being lost. */
            is_disabled?: boolean;
            /** @description All users on the nodes that are this person, instead of those before. */
            linux_names?: string[];
            /** @enum {unknown} */
            role?: "admin" | "member" | "viewer";
        };
        /**
         * AccountExport
         * @description Everything that is kept about a person.
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
             * @description Stays on devices, as far back as they bear a name.
             * @default []
             */
            usage?: components["schemas"]["UsageSession"][];
        };
        /**
         * AccountRequest
         * @description A local account to be made.
         */
        AccountRequest: {
            /**
             * @description What others read; the name unless given.
             * @default null
             */
            display_name?: string | null;
            /** @description Groups to be in. */
            groups?: string[];
            /** @description Users on the nodes that are this person, besides the one of the same name. */
            linux_names?: string[];
            /** @description To log in with. */
            name: string;
            /**
             * @description At least ten characters; made up and told once unless given.
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
         * Address
         * @description An address of a network interface that is up.
         */
        Address: {
            interface: string;
            ip: string;
        };
        /**
         * AnyDevices
         * @description Devices that are all the same to the person: the hub chooses, when booking.
         */
        AnyDevices: {
            /** @default 1 */
            count?: number;
            /**
             * @description Memory that each must have at least.
             * @default null
             */
            min_memory_bytes?: number | null;
            /**
             * @description Words that the short or full name must have, such as A100 80GB or 1g.10gb.
             * @default null
             */
            model?: string | null;
            /**
             * @description All on one node, or none at all. Otherwise one node is only preferred.
             * @default false
             */
            same_node?: boolean;
        };
        /**
         * AuditEntry
         * @description One line of the audit log: who did what, when and from where.
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
            /** @description The account's name as it is now, or what acted instead. */
            who: string;
        };
        /**
         * Availability
         * @description Whether a device can be had: one state, why, and since when.
         */
        Availability: {
            reason: string;
            /** @description Hub time, UTC epoch seconds. */
            since: number | null;
            /** @enum {unknown} */
            state: "booked" | "busy" | "fault" | "free" | "held" | "offline" | "stale" | "unknown";
        };
        /**
         * BookedDevice
         * @description A device of a booking, with what people call it.
         */
        BookedDevice: {
            /** @description Of a slice, within its GPU; none if the device is gone. */
            index: number | null;
            /** @description No node reports it any more. */
            is_gone: boolean;
            node_id: string;
            /** @description The node's id if the node is gone. */
            node_name: string;
            /** @description Of a slice, the index of its GPU. */
            parent_index: number | null;
            /** @description None if the device is gone. */
            short_name: string | null;
            uuid: string;
        };
        /**
         * Booking
         * @description One booking, of one or more devices, as one whole.
         */
        Booking: {
            /** @description UTC epoch seconds. */
            changed_at: number;
            comment: string;
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description Sorted; never empty. */
            devices: components["schemas"]["DeviceRef"][];
            /** @description The first second that is free again. */
            ends_at: number;
            /** @description Group on whose behalf it was made. */
            group: string | null;
            id: number;
            /**
             * @description Made here, or read from a comments.json.
             * @default person
             * @enum {unknown}
             */
            origin?: "comments" | "person";
            /** @description Account; none if its person has none. */
            owner_id: string | null;
            /** @description Shown name of the holder, or of the group it is for. */
            owner_name: string;
            /**
             * @description Of one released early, the end it had before.
             * @default null
             */
            released_from?: number | null;
            /** @description Of the records when it last changed; give it back when editing. */
            revision: number;
            /**
             * @description Of a weekly booking, the series it belongs to.
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
         * @description What is to be different. What is not given stays.
         */
        BookingChange: {
            comment?: string;
            devices?: components["schemas"]["DeviceRef"][];
            end?: number | string;
            /** @description null: on nobody's behalf any more. */
            group?: string | null;
            /** @description That of the booking as it was read; if it has changed since, nothing is done. */
            revision?: number;
            /** @description Only of a booking that has not begun. */
            start?: number | string;
            title?: string;
            /** @description By default that of the booking. */
            zone?: string;
        };
        /**
         * BookingConflict
         * @description A booking that is in the way, on one device.
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
         * @description What the viewer may book, and what is used of it. A limit that is none does not apply.
         */
        BookingPolicy: {
            /** @description Most devices at one time from now on. */
            devices_booked: number;
            /** @description Device-hours booked from now on. */
            gpu_hours_ahead: number | null;
            /** @description Device-hours booked from now on. */
            gpu_hours_booked: number;
            /** @description Groups that one may book on behalf of. */
            groups: string[];
            horizon_days: number | null;
            /** @description An admin: no limits but those of other bookings. */
            is_exempt: boolean;
            max_days: number | null;
            /** @description Devices at one time. */
            max_devices: number | null;
            may_book: boolean;
            needs_approval: boolean;
            /** @description Time zone of texts that come without one. */
            zone: string;
        };
        /**
         * BookingRequest
         * @description A booking to be made. Devices are given by ``devices`` and ``nodes``, or by one of ``any`` and ``running``.
         */
        BookingRequest: {
            /**
             * @description As many of a kind, also as text: "2 x A100 80GB".
             * @default null
             */
            any?: string | components["schemas"]["AnyDevices"] | null;
            /** @default  */
            comment?: string;
            /**
             * @description These. A partitioned GPU stands for its slices.
             * @default []
             */
            devices?: components["schemas"]["DeviceRef"][];
            /**
             * @description Check everything and tell what would be booked, but book nothing.
             * @default false
             */
            dry_run?: boolean;
            /** @description UTC epoch seconds, or text: "3d 4h", "until friday 18:00". */
            end: number | string;
            /**
             * @description Group on whose behalf; all its members may then change the booking.
             * @default null
             */
            group?: string | null;
            /**
             * @description Every device of these nodes, by their ids.
             * @default []
             */
            nodes?: string[];
            /**
             * @description The devices on which processes of the person who asks run right now.
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
             * @description IANA time zone of the texts; by default bookings.zone.
             * @default null
             */
            zone?: string | null;
        };
        /**
         * BookingUsage
         * @description Booked against used, in device-hours of bookings that lie in the range and in the past.
         */
        BookingUsage: {
            booked_hours: number;
            /** @description Of these, with only others on it. */
            others_hours: number;
            /** @description Of these, with nobody on it. */
            unused_hours: number;
            /** @description Of these, with the holder on the device. */
            used_hours: number;
        };
        /**
         * BookingView
         * @description One booking as the one who looks may see it.
         */
        BookingView: {
            changed_at: number;
            /** @description Empty in the public view. */
            comment: string;
            created_at: number;
            devices: components["schemas"]["BookedDevice"][];
            /** @description The first second that is free again. */
            ends_at: number;
            /** @description Group on whose behalf; never told in public. */
            group: string | null;
            /** @description Who has it: a person's or group's shown name; in public, a pseudonym. */
            holder: string;
            /** @description 0 in a dry run: nothing was booked. */
            id: number;
            /** @description It is the viewer's, or of a group of the viewer's. */
            is_own: boolean;
            /** @description The viewer may change, release or cancel it now. */
            may_edit: boolean;
            /**
             * @description Made here, or read from a comments.json.
             * @enum {unknown}
             */
            origin: "comments" | "person";
            /** @description The holder's account; never told in public. */
            owner_id: string | null;
            /** @enum {unknown} */
            phase: "current" | "past" | "upcoming";
            /** @description Of one released early, the end it had before. */
            released_from: number | null;
            /** @description Give it back when changing the booking. */
            revision: number;
            series_id: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
            /**
             * @description Pending: waits for an admin and holds its devices meanwhile.
             * @enum {unknown}
             */
            state: "active" | "cancelled" | "pending" | "refused";
            /** @description Empty in the public view. */
            title: string;
            /** @description IANA time zone in which it was made; in public always UTC. */
            zone: string;
        };
        /**
         * Cancellation
         * @description What is to be cancelled.
         */
        Cancellation: {
            /**
             * @description Also the later ones of the same weekly series; of a running one, only those.
             * @default false
             */
            series?: boolean;
        };
        /**
         * CopyRequest
         * @description The same devices for as long as before, at another time.
         */
        CopyRequest: {
            /**
             * @description By default it lasts as long as the first one.
             * @default null
             */
            end?: number | string | null;
            start: number | string;
            /**
             * @description By default that of the booking.
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
            /** @description The password that was made up, shown this once; null if one was given. */
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
            /** @description Its address below this hub's, with the secret in it: shown this once, and for nobody else. */
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
            /** @description The secret, shown this once; send it as Authorization: Bearer. */
            token: string;
        };
        /**
         * Decision
         * @description What an admin answers to.
         */
        Decision: {
            /** @description That of the booking as it was read; if it has changed since, nothing is decided. */
            revision: number;
        };
        /**
         * DeviceBookingView
         * @description A booking at its device: the one that runs, the one after it, or one that ended in the last two days.
         */
        DeviceBookingView: {
            /** @description UTC, whole seconds. */
            ends_at: number;
            /** @description Who has it; to the public, a pseudonym. */
            holder: string;
            id: number;
            /** @enum {unknown} */
            phase: "current" | "next" | "past";
            /** @description UTC, whole seconds. */
            starts_at: number;
            /** @description None: not told to who asks. */
            title: string | null;
            /**
             * @description What happens on the device during the booking; none before and after it.
             * @default null
             */
            use?: ("holder" | "others" | "shared" | "unknown" | "unused") | null;
        };
        /**
         * DeviceBookings
         * @description All bookings that are to be shown at one device; often none any more.
         */
        DeviceBookings: {
            bookings: components["schemas"]["DeviceBookingView"][];
            row: number;
        };
        /**
         * DeviceColumns
         * @description Devices whose numbers changed: position i of every list belongs to row ``row[i]``.
         *
         *         In the units in which they are rounded: half of the bytes of the whole stream are these.
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
         * @description Devices of which something changed that seldom does.
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
         * @description What a GPU or slice is; changes only when the machine or its MIG layout is changed.
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
            /** @description Position in the driver's order; of a slice, the position in its parent. */
            index: number;
            /**
             * @description MIG is on: the work is done by the slices, not by this row.
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
             * @description What the memory figures count: framebuffer; framebuffer with the driver's reserve included (old drivers); or the host's memory on unified-memory machines.
             * @default framebuffer
             * @enum {unknown}
             */
            memory_basis?: "framebuffer" | "framebuffer_with_reserved" | "host";
            /**
             * @description Memory that the device can use.
             * @default null
             */
            memory_total_bytes?: number | null;
            /** @description The product name as the driver gives it. */
            name: string;
            /**
             * @description Of a slice, the GPU it is cut from.
             * @default null
             */
            parent_uuid?: string | null;
            /**
             * @description PCI address, such as 00000000:3B:00.0.
             * @default null
             */
            pci_bus_id?: string | null;
            /**
             * @description Power limit as shipped.
             * @default null
             */
            power_limit_default_watts?: number | null;
            /**
             * @description Of a slice, its MIG profile, such as 1g.10gb.
             * @default null
             */
            profile?: string | null;
            /** @description The vendor's unique id; the key of the device everywhere. */
            uuid: string;
            /**
             * @description nvidia, amd, intel or simulated.
             * @default nvidia
             */
            vendor?: string;
        };
        /**
         * DeviceInventory
         * @description A device in the live stream: its facts and the row under which its numbers arrive.
         */
        DeviceInventory: {
            facts: components["schemas"]["DeviceFacts"];
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
         * @description What a device does at one moment.
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
             * @description Memory kept by driver and firmware.
             * @default null
             */
            memory_reserved_bytes?: number | null;
            /**
             * @description Memory allocated.
             * @default null
             */
            memory_used_bytes?: number | null;
            /**
             * @description PCIe traffic to the device (off by default: costly to read).
             * @default null
             */
            pcie_receive_bytes_per_second?: number | null;
            /**
             * @description PCIe traffic from the device (off by default: costly to read).
             * @default null
             */
            pcie_send_bytes_per_second?: number | null;
            /**
             * @description 0 is the fastest; NVIDIA writes it P0.
             * @default null
             */
            performance_state?: number | null;
            /**
             * @description Power limit in force.
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
             * @description Use of the video decoder.
             * @default null
             */
            utilization_decoder?: number | null;
            /**
             * @description Use of the video encoder.
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
         * @description One GPU or slice with everything known of it.
         */
        DeviceView: {
            availability: components["schemas"]["Availability"];
            /**
             * @description In the order of their times.
             * @default []
             */
            bookings?: components["schemas"]["DeviceBookingView"][];
            facts: components["schemas"]["DeviceFacts"];
            node_id: string;
            processes: components["schemas"]["ProcessView"][];
            sample: components["schemas"]["DeviceSample"];
            /** @description The product name without the words everyone leaves out. */
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
         * @description How well the devices that were in use worked: device-hours by utilisation.
         */
        Distribution: {
            by_type: {
                [key: string]: number[];
            };
            /** @description Bounds of the classes, one more than there are classes. */
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
             * @description A secret that the node has made for itself: ghn_ and 256 random bits in base64url without padding. With it the same request may be sent again, should its answer be lost, and is answered alike. Without it the hub makes one.
             * @default null
             */
            credential?: string | null;
            /** @description What the machine calls itself. */
            hostname: string;
            /**
             * @description Name to be shown; default is the hostname.
             * @default null
             */
            name?: string | null;
            /** @description Join token from `gpuherd hub token create`. */
            token: string;
        };
        /**
         * EnrolmentResult
         * @description Who the node is to the hub from now on.
         */
        EnrolmentResult: {
            /** @description The node's secret: the one it brought, or a new one that is shown this once. */
            credential: string;
            /** @description The id the hub has given; unique and for ever. */
            node_id: string;
        };
        /**
         * ErasureRequest
         * @description That one really means it.
         */
        ErasureRequest: {
            /** @description One's own name. */
            name: string;
            /**
             * @description One's password, if the account has one here.
             * @default
             */
            password?: string;
        };
        /**
         * ErrorBody
         * @description The body of every answer that is not a success.
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
             * @description Of a time that can be read in two ways (ambiguous_time, nonexistent_time), both.
             * @default []
             */
            choices?: components["schemas"]["TimeChoice"][];
            /** @description Stable, for programs. */
            code: string;
            /**
             * @description Of a conflict, what is in the way: the first few.
             * @default []
             */
            conflicts?: components["schemas"]["BookingConflict"][];
            /** @description For people; says what to do. */
            message: string;
            /**
             * @description Of a conflict, when all would be free for as long.
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
            /** @description A duration such as "1d" counts from the end the booking has now. */
            end: number | string;
            /** @default null */
            revision?: number | null;
            /**
             * @description By default that of the booking.
             * @default null
             */
            zone?: string | null;
        };
        /**
         * FeedRequest
         * @description A calendar to be made.
         */
        FeedRequest: {
            /**
             * @description Of a device's calendar, which.
             * @default null
             */
            device?: components["schemas"]["DeviceRef"] | null;
            /**
             * @description account: one's own bookings and those of one's groups; device: all of one device.
             * @default account
             * @enum {unknown}
             */
            kind?: "account" | "device";
        };
        /**
         * FeedView
         * @description A calendar that is read by a secret address, without the address.
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
         * @description One message of the live stream. ``after_tick`` is the tick it builds on; none in a snapshot.
         */
        FleetChange: {
            /** @description Missing a tick? Ask for a new snapshot. */
            after_tick: number | null;
            /** @description Devices whose bookings changed. */
            device_bookings: components["schemas"]["DeviceBookings"][];
            device_details: components["schemas"]["DeviceDetailColumns"];
            device_states: components["schemas"]["DeviceStateColumns"];
            devices: components["schemas"]["DeviceColumns"];
            host_states: components["schemas"]["HostStateColumns"];
            hosts: components["schemas"]["HostColumns"];
            nodes: components["schemas"]["NodeInventory"][];
            /** @description All that are in force. */
            notices: components["schemas"]["FleetNotice"][];
            /** @description Node rows that are gone. */
            removed: number[];
            tick: number;
            /** @description How long until the next message is to be expected. */
            tick_seconds: number;
            /** @description Hub time; ages are counted from it. */
            time: number;
            totals: components["schemas"]["Totals"];
            uses: components["schemas"]["UseColumns"];
        };
        /**
         * FleetNotice
         * @description Something about the whole herd that everyone who looks should know.
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
            /** @description When the hub last judged the herd: its own time, UTC epoch seconds. */
            time: number;
            totals: components["schemas"]["Totals"];
        };
        /**
         * FreeSlot
         * @description A span in which what was asked for is free.
         */
        FreeSlot: {
            devices: components["schemas"]["BookedDevice"][];
            /** @description UTC, whole seconds. */
            ends_at: number;
            /** @description When one of these is booked next; none if not at all. */
            free_until: number | null;
            /** @description UTC, whole seconds. */
            starts_at: number;
        };
        /**
         * Glance
         * @description What is free and who has what, all over the herd. ``GET /fleet`` tells everything.
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
            /** @description When the hub last judged the herd: its own time, UTC epoch seconds. */
            time: number;
            totals: components["schemas"]["Totals"];
        };
        /**
         * GlanceBookings
         * @description The booking of a device that runs, and the next one.
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
            /** @description Of a slice, the GPU it is cut from. */
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
         * @description What some of the devices are.
         */
        GlanceModel: {
            /** @description MIG is on: the work is done by the slices. */
            is_partitioned: boolean;
            /** @enum {unknown} */
            kind: "gpu" | "slice";
            /** @enum {unknown} */
            memory_basis: "framebuffer" | "framebuffer_with_reserved" | "host";
            memory_total_bytes: number | null;
            /** @description The product name as the driver gives it. */
            name: string;
            /** @description Of a slice, its MIG profile, such as 1g.10gb. */
            profile: string | null;
            /** @description The product name without the words everyone leaves out. */
            short_name: string;
            vendor: string;
        };
        /**
         * GlanceNodes
         * @description All nodes, in the order in which people see them: position i of every list belongs to one node.
         */
        GlanceNodes: {
            /** @description How long ago the last report came; null if there was none. */
            age_seconds: (number | null)[];
            /** @description How many of ``devices`` are the node's; they follow each other. */
            device_count: number[];
            /** @description What machines call themselves; null before the first report. */
            hostname: (string | null)[];
            id: string[];
            /** @description The shown names. */
            name: string[];
            reason: string[];
            state: ("live" | "never" | "offline" | "stale")[];
        };
        /**
         * GlanceProblem
         * @description What a node says is wrong.
         */
        GlanceProblem: {
            /** @description Position in ``nodes``. */
            node: number;
            problem: components["schemas"]["Problem"];
        };
        /**
         * GlanceProcesses
         * @description All processes that compute: position i of every list belongs to one process on one device.
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
         * @description One list of nodes that the hub asks.
         */
        GroupHealth: {
            /** @description Nodes that cannot be reached or understood now. */
            failing: number;
            /** @description When the list was last had. */
            found_at: number | null;
            /** @description Nodes that the list no longer names, soon forgotten. */
            missing: number;
            name: string;
            nodes: number;
            /** @description Entries that are left out, and why. */
            refused: {
                [key: string]: string;
            };
            /** @description Why the last good list is still in force. */
            trouble: string | null;
            trouble_since: number | null;
            /** @enum {unknown} */
            way: "file" | "gpustat" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * Health
         * @description The hub's own state; ``degraded`` comes with reasons that say what to do.
         */
        Health: {
            /**
             * @description Null: nothing is remembered.
             * @default null
             */
            history?: components["schemas"]["HistoryHealth"] | null;
            links: components["schemas"]["LinkHealth"];
            lists: components["schemas"]["GroupHealth"][];
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
         * @description What everyone may know of the hub: monitors, and nodes that ask whether this is a hub and what time it is.
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
            /** @description How many devices were in each state, on the mean of each step. */
            devices: {
                [key: string]: (number | null)[];
            };
            end: number;
            /** @description Used share of all memory. */
            memory_ratio: (number | null)[];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            /** @description Sum of all devices that told one. */
            power_watts: (number | null)[];
            /** @enum {unknown} */
            resolution: "minute" | "quarter_hour" | "raw";
            start: number;
            step_seconds: number;
            times: number[];
            /** @description Short names of the types there were in this range. */
            types: string[];
            /** @description Mean of all devices that told one. */
            utilization_gpu: (number | null)[];
        };
        /**
         * HistoryHealth
         * @description How remembering is doing.
         */
        HistoryHealth: {
            /**
             * @description Nothing more is taken until there is room; agents keep it and send it then.
             * @default false
             */
            is_closed?: boolean;
            journal: components["schemas"]["JournalHealth"];
            /**
             * @description Samples that there was no room for, of nodes that cannot send them again.
             * @default 0
             */
            lost_samples?: number;
            /**
             * @description Samples that there was no room for and that agents are to send again.
             * @default 0
             */
            sent_again_samples?: number;
            sinks: components["schemas"]["SinkHealth"][];
            /**
             * @description Samples that came too late to be kept: after 8 days, or `raw_days` if that is more.
             * @default 0
             */
            too_old_samples?: number;
            /**
             * @description Samples whose use could not be counted; the hub's log says why.
             * @default 0
             */
            uncounted_samples?: number;
            /**
             * @description Taken and not yet written down.
             * @default 0
             */
            waiting_bytes?: number;
        };
        /**
         * HostColumns
         * @description Nodes whose contact or host numbers changed, by node row.
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
         * @description What the machine is; sent on change.
         */
        HostFacts: {
            /** @default [] */
            addresses?: components["schemas"]["Address"][];
            /**
             * @description gpuherd version that reports.
             * @default null
             */
            agent_version?: string | null;
            /**
             * @description Machine type, such as x86_64.
             * @default null
             */
            architecture?: string | null;
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
            /** @description What the machine calls itself; shown, never used as its identity. */
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
         * @description What the machine does at one moment.
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
         * @description Nodes of which something changed that seldom does.
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
            /** @description Share of the devices at work, 7 lists of 24. */
            busy: (number | null)[][];
            end: number;
            /** @description Share of the devices free. */
            free: (number | null)[][];
            /** @description Share of the devices held without work. */
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
         * @description How writing down is doing. While it fails nodes get no acknowledgement, and what they say is live only.
         */
        JournalHealth: {
            /**
             * @description Places that could not be read at the last start.
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
             * @description Devices or stays left out because of that.
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
            /** @description What the browser calls itself. */
            agent: string;
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description UTC epoch seconds. */
            expires_at: number;
            id: string;
            /** @description Whether it is the one that asks. */
            is_current: boolean;
            /** @description Address from which the login came. */
            peer: string;
            /** @description When it was last used, to within a minute or so. */
            seen_at: number;
        };
        /**
         * KeptToken
         * @description A key for programs, without its secret.
         */
        KeptToken: {
            /** @description UTC epoch seconds. */
            created_at: number;
            /** @description UTC epoch seconds. */
            expires_at: number;
            id: string;
            scopes: ("admin" | "book" | "read")[];
            /**
             * @description When it was last used, to within a minute or so; null: never.
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
            /** @description Nodes that replace each other's link: two machines share one credential. */
            flapping: string[];
            open: number;
            refused_credentials: number;
            /** @description Links closed because the same node connected again. */
            replaced: number;
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
         * @description One of the hub's own loops; each is restarted by itself when it fails.
         */
        LoopHealth: {
            consecutive_errors: number;
            errors: number;
            last_error: string | null;
            last_error_at: number | null;
            last_success_at: number | null;
            name: string;
            /** @description Rounds that went well since the hub started. */
            rounds: number;
            /** @enum {unknown} */
            state: "failing" | "ok" | "starting" | "stopped";
        };
        /**
         * MetricSeries
         * @description One number over time; each list is as long as the answer's ``times``.
         *
         *         ``low`` and ``high`` are those of the samples behind each point. Of single samples they are the same as ``mean``.
         */
        MetricSeries: {
            high: (number | null)[];
            low: (number | null)[];
            mean: (number | null)[];
        };
        /**
         * MissingPart
         * @description A stretch of time of which something is missing that had been kept, or is not kept any more.
         */
        MissingPart: {
            end: number;
            /** @description Such as: a file cannot be read; no longer kept. */
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
         * @description A month in the report's zone, and the month before it to compare with.
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
         * NodeFacts
         * @description What a node is: the host and its devices, slices after their parent.
         */
        NodeFacts: {
            /** @default [] */
            devices?: components["schemas"]["DeviceFacts"][];
            host: components["schemas"]["HostFacts"];
        };
        /**
         * NodeHealth
         * @description How a node's frames fare, counted since the hub started.
         */
        NodeHealth: {
            accepted: number;
            backfilled: number;
            dropped_by_agent: number;
            duplicates: number;
            last_error: string | null;
            last_error_at: number | null;
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
         * @description A node in the live stream: all that is not a number. Sent again whenever any of it changes.
         */
        NodeInventory: {
            devices: components["schemas"]["DeviceInventory"][];
            host: components["schemas"]["HostFacts"] | null;
            id: string;
            name: string;
            /** @description What the hub has to say of the node; the hub's times. */
            notes: components["schemas"]["Problem"][];
            /** @description Nodes are sorted by this, then by name. */
            place: number;
            /** @description What the node says is wrong; its own times. */
            problems: components["schemas"]["Problem"][];
            processes: components["schemas"]["Process"][];
            row: number;
            uses: components["schemas"]["ProcessUse"][];
            /** @enum {unknown} */
            way: "file" | "gpustat" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * NodeView
         * @description One node with its devices; ``host`` is none until its first report.
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
            /** @description The shown name. */
            name: string;
            /** @description What the hub has to say of the node; the hub's times. */
            notes: components["schemas"]["Problem"][];
            /** @description What the node says is wrong; its own times. */
            problems: components["schemas"]["Problem"][];
            reason: string;
            /** @description Hub time of the last live report. */
            received_at: number | null;
            /** @enum {unknown} */
            state: "live" | "never" | "offline" | "stale";
            /**
             * @description How its reports reach the hub.
             * @enum {unknown}
             */
            way: "file" | "gpustat" | "node_info" | "pull" | "push" | "ssh" | "xmlrpc";
        };
        /**
         * OwnCommands
         * @description All processes of the viewer itself, with full command lines: position i of every list belongs to one process.
         *
         *         A process is known by its node, pid and start.
         */
        OwnCommands: {
            command: (string | null)[];
            node_id: string[];
            pid: number[];
            started_at: (number | null)[];
        };
        /**
         * PasswordChange
         * @description A new password for oneself.
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
            /** @description False: this page came by plain HTTP from elsewhere, where others could read a password; POST would answer 403 insecure. */
            is_taken_here: boolean;
        };
        /**
         * Problem
         * @description Something that is wrong on a node, told by the node itself.
         */
        Problem: {
            /** @description Stable name: no_driver, no_gpu, driver_mismatch, driver_hung, driver_crashed, gpu_lost, reset_required, gpu_error, xid, no_permission, driver_failed, too_many_devices, metric_failed, processes_failed, host_failed; newer agents may add more. */
            code: string;
            /**
             * @description The device concerned; none for the whole node.
             * @default null
             */
            device_uuid?: string | null;
            /**
             * @description The device (or with none named, every device) must not be called usable.
             * @default false
             */
            is_fault?: boolean;
            /** @description What is wrong and what to do, for people. */
            message: string;
            /**
             * @description Node time at which it was first seen.
             * @default null
             */
            since?: number | null;
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
             * @description Owner; none when it cannot be known.
             * @default null
             */
            user?: string | null;
        };
        /**
         * ProcessSample
         * @description What a process costs its host at one moment.
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
             * @description Processes left out because there were too many.
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
         * @description What a node did in the last minutes, oldest first. Null is unknown, also where the node was not live.
         */
        RecentView: {
            /** @description By the device's uuid; at most 64 of them. */
            devices: {
                [key: string]: components["schemas"]["RecentDevice"];
            };
            host: components["schemas"]["RecentHost"];
            /** @description The usual distance of two moments. */
            interval_seconds: number;
            node_id: string;
            /** @description UTC epoch seconds by the hub's clock. */
            times: number[];
        };
        /**
         * RedirectLogin
         * @description Logging in elsewhere.
         */
        RedirectLogin: {
            /** @description What the button says. */
            label: string;
            /** @description Where it leads, relative to the hub's page; takes ?return=PATH. */
            url: string;
        };
        /**
         * Renaming
         * @description What one may change of one's own account.
         */
        Renaming: {
            /** @description What others read; empty: the name. */
            display_name: string;
        };
        /**
         * Report
         * @description Everything a node can say of itself at one moment.
         */
        Report: {
            facts: components["schemas"]["NodeFacts"];
            sample: components["schemas"]["Sample"];
            /** @default {} */
            table?: components["schemas"]["ProcessTable"];
        };
        /**
         * ReportReceipt
         * @description Whose report was taken.
         */
        ReportReceipt: {
            node_id: string;
        };
        /**
         * Sample
         * @description What a node does at one moment; each tuple is aligned with the facts or the process table.
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
             * @description The coarsest of what the points were made from.
             * @enum {unknown}
             */
            resolution: "minute" | "quarter_hour" | "raw";
            start: number;
            /** @description Distance of two points; each stands for its whole step. */
            step_seconds: number;
            subjects: components["schemas"]["SubjectSeries"][];
            /** @description Start of each step, UTC epoch seconds by the hub's clock. */
            times: number[];
        };
        /**
         * SessionView
         * @description Who asks, what is shown to them, and how one can log in.
         */
        SessionView: {
            /** @description Null: nobody is logged in. */
            account: components["schemas"]["Account"] | null;
            bookings_enabled: boolean;
            /** @description Whether the account has a password here, that can be changed here. */
            has_password: boolean;
            /** @description False: nobody can log in until the set-up link is used. */
            is_set_up: boolean;
            password: components["schemas"]["PasswordLogin"];
            /** @description What is shown; null: nothing. */
            privacy: ("admin" | "counts" | "member" | "public") | null;
            /** @description Null: there is no such way. */
            redirect: components["schemas"]["RedirectLogin"] | null;
            /** @description What this session or token allows, sorted. */
            scopes: ("admin" | "book" | "read")[];
            /**
             * @description How the account was recognised.
             * @enum {unknown}
             */
            via: "nobody" | "proxy" | "session" | "token";
            /** @description IANA time zone of times that come without one. */
            zone: string;
        };
        /**
         * SetupRequest
         * @description The first admin.
         */
        SetupRequest: {
            /** @description What stands behind the # of the set-up link. */
            code: string;
            /**
             * @description What others read; the name unless given.
             * @default null
             */
            display_name?: string | null;
            /** @description To log in with. */
            name: string;
            /** @description At least ten characters. */
            password: string;
        };
        /**
         * SinkHealth
         * @description How a sink is doing.
         */
        SinkHealth: {
            /** @default null */
            last_error?: string | null;
            /** @default null */
            last_error_at?: number | null;
            name: string;
            /**
             * @description UTC epoch seconds of the oldest that is kept.
             * @default null
             */
            oldest?: number | null;
            /** @default null */
            size_bytes?: number | null;
            /** @enum {unknown} */
            state: "behind" | "failing" | "ok";
            /**
             * @description What was kept and cannot be read any more.
             * @default []
             */
            unreadable?: components["schemas"]["MissingPart"][];
            /**
             * @description Taken, and not yet where they are to be.
             * @default 0
             */
            waiting_batches?: number;
        };
        /**
         * StateSpan
         * @description A device's state for a while; where rollups are told, the one it was in for most of each step.
         */
        StateSpan: {
            end: number;
            start: number;
            state: string;
        };
        /**
         * StoreHealth
         * @description Whether what nodes send is being kept. While it is not, nodes get no acknowledgement and resend.
         */
        StoreHealth: {
            last_error: string | null;
            saved_at: number | null;
            /** @enum {unknown} */
            state: "failing" | "ok";
            /** @description Nodes with news that is not saved yet. */
            waiting_nodes: number;
        };
        /**
         * SubjectSeries
         * @description One device or host over time.
         */
        SubjectSeries: {
            /**
             * @description By the name of the sample's field, such as power_watts.
             * @default {}
             */
            metrics?: {
                [key: string]: components["schemas"]["MetricSeries"];
            };
            node_id: string;
            /**
             * @description Of a device; gaps have no span.
             * @default []
             */
            states?: components["schemas"]["StateSpan"][];
            /**
             * @description Of a device; null for the host itself.
             * @default null
             */
            uuid?: string | null;
        };
        /**
         * TemporaryPassword
         * @description A password that was made up.
         */
        TemporaryPassword: {
            /** @description Shown this once; the person should change it. */
            password: string;
        };
        /**
         * TimeChoice
         * @description One way to read a time that can be read in two ways.
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
         * @description Devices × time: every booking that holds a device within a span, once.
         */
        TimelineView: {
            /** @description Pending and active ones, by start. */
            bookings: components["schemas"]["TimelineBooking"][];
            /** @description In the order of the page; partitioned GPUs as slices. */
            devices: components["schemas"]["TimelineDevice"][];
            /** @description False while the records do not answer: bookings as they were last known. */
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
         * @description A token to be made.
         */
        TokenRequest: {
            /**
             * @description How long it is valid.
             * @default 90
             */
            days?: number;
            /** @description read: look; book: make and change bookings; admin: everything an admin may. Within the role. */
            scopes: ("admin" | "book" | "read")[];
            /** @description What it is for. */
            title: string;
        };
        /**
         * Totals
         * @description The herd in numbers. A partitioned GPU is counted through its slices, not twice.
         */
        Totals: {
            devices: {
                [key: string]: number;
            };
            models: components["schemas"]["ModelTotals"][];
            nodes: {
                [key: string]: number;
            };
        };
        /**
         * TrendRow
         * @description How much one user holds now and held lately: whom to ask.
         */
        TrendRow: {
            /** @description Of these, held without work. */
            idle_gpus: number;
            label: string;
            mean_1w: number;
            mean_24h: number;
            /** @description Moving average of used GPUs, with a time constant of 2 hours. */
            mean_2h: number;
            /** @description GPUs booked right now. */
            reserved_gpus: number;
            /**
             * @description Whether it grows: the average of 2 hours against that of 24.
             * @enum {unknown}
             */
            trend: "down" | "level" | "up";
            /** @description GPUs held right now; shared ones count by the share of memory. */
            used_gpus: number;
            /** @description Null is unknown. */
            user: string | null;
        };
        /**
         * TrendsView
         * @description Whom to ask for a GPU: those who hold most come first.
         */
        TrendsView: {
            /** @description The GPUs that nobody uses, told in the same way. */
            free: components["schemas"]["TrendRow"];
            rows: components["schemas"]["TrendRow"][];
            time: number;
        };
        /**
         * UsageFigures
         * @description Use in numbers. A GPU that several share is split between them by the memory they hold.
         *
         *         ``busy + idle + unknown = gpu_hours``: nothing that was held is left out.
         */
        UsageFigures: {
            /** @description Of these, at work: at or above availability.busy_utilization. */
            busy_hours: number;
            /**
             * @description By the prices in [usage]; null without any.
             * @default null
             */
            cost?: number | null;
            /** @description Busy share of the hours with known utilisation; null if there are none. */
            efficiency: number | null;
            /** @description Null if no device told its power. */
            energy_kwh: number | null;
            /** @description GPUs held × hours; slices count as their share of the GPU. */
            gpu_hours: number;
            /**
             * @description What the idle hours cost at the price of a GPU-hour; null without one.
             * @default null
             */
            idle_cost?: number | null;
            /** @description Of these, held without work: the waste. */
            idle_hours: number;
            /** @description Mean utilisation while held; null if unknown. */
            mean_utilization: number | null;
            memory_gib_hours: number;
            /** @description Of these, with unknown utilisation. */
            unknown_hours: number;
        };
        /**
         * UsageOverTime
         * @description The largest users, groups, nodes, types or jobs, step by step; all others together come last.
         */
        UsageOverTime: {
            busy_hours: number[][];
            /** @enum {unknown} */
            by: "device" | "group" | "job" | "node" | "type" | "user";
            end: number;
            /** @description Of each key, one number a step. */
            gpu_hours: number[][];
            /** @description Null is unknown. */
            keys: (string | null)[];
            labels: string[];
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            others_busy_hours: number[];
            others_gpu_hours: number[];
            start: number;
            /** @enum {unknown} */
            step: "day" | "hour" | "month" | "week";
            /** @description Start of each step in the report's zone, UTC epoch seconds. */
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
             * @description GPU-hours that the herd could have given: seen and without fault.
             * @default null
             */
            capacity_hours?: number | null;
            /** @default null */
            currency?: string | null;
            end: number;
            /**
             * @description Of these, nobody used.
             * @default null
             */
            free_hours?: number | null;
            /** @default [] */
            missing?: components["schemas"]["MissingPart"][];
            /**
             * @description Rows beyond the limit; the totals count them.
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
         * @description The use of one user, group, node, type, job or device.
         */
        UsageRow: {
            /**
             * @description By user, group, node, type and device.
             * @default null
             */
            bookings?: components["schemas"]["BookingUsage"] | null;
            devices: number;
            figures: components["schemas"]["UsageFigures"];
            /** @description Name or id; null is unknown: an owner that could not be told. */
            key: string | null;
            /** @description What people read. */
            label: string;
            sessions: number;
            users: number;
        };
        /**
         * UsageSession
         * @description Someone's stay on one device.
         */
        UsageSession: {
            /**
             * @description For the user itself and admins, as long as it is kept; else the program.
             * @default null
             */
            command?: string | null;
            /** @default null */
            container?: string | null;
            /** @description Null: goes on. */
            ended_at: number | null;
            figures: components["schemas"]["UsageFigures"];
            id: string;
            /** @default null */
            job?: string | null;
            last_seen_at: number;
            /** @description What people call the node. */
            node: string;
            node_id: string;
            started_at: number;
            /** @description Short name of the device's type. */
            type: string;
            /** @description Null is unknown. */
            user: string | null;
            uuid: string;
        };
        /**
         * UsageSessions
         * @description Stays on devices in a range, latest first.
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
         * @description Process numbers that changed: ``position[i]`` is the place in the uses of node row ``node[i]``.
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
         * @description What a process takes of one device at one moment.
         */
        UseSample: {
            /**
             * @description Device memory held.
             * @default null
             */
            gpu_memory_bytes?: number | null;
            /**
             * @description Share of the SMs' time, where the driver tells.
             * @default null
             */
            utilization_sm?: number | null;
        };
        /**
         * UserSeries
         * @description What one user held and worked over time.
         */
        UserSeries: {
            /** @description Of these, at work. */
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
         * @description What one user holds right now; user ``None`` gathers the processes whose owner is unknown.
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
         * @description The same again every week, at the same time by the clock on the wall; all of them or none.
         */
        Weekly: {
            /** @description How many in all. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description The link is open. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Found anywhere in an entry, also in the names of people. */
                text?: string | null;
                /** @description Such as login.failed, or booking for all of bookings. */
                action?: string | null;
                /** @description What this account did, or what was done to it; its id. */
                account?: string | null;
                /** @description From then on; UTC epoch seconds. */
                since?: number | null;
                /** @description Before then; UTC epoch seconds. */
                until?: number | null;
                /** @description Only those with a lower number, for paging. */
                before?: number | null;
                /** @description How many at most. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Only one's own, and those of groups that one is in. */
                mine?: boolean;
                /** @description Only those of this node's devices, by its id. */
                node?: string | null;
                /** @description Only those of the device with this UUID. */
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
                /** @description How many at most. */
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
            /** @description Not a success; the body says why. */
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
            header?: never;
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            header?: never;
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description It is as it was: If-None-Match named its ETag. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Only nodes with this id, name or host name; where there is none, those with the same beginning up to the first dot. If these are more than 100, all nodes. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
                /** @description A device as node id, colon, UUID; may be repeated. */
                device: string[];
                /** @description May be repeated; default: utilization_gpu. Known: utilization_gpu, utilization_memory, utilization_encoder, utilization_decoder, memory_used_bytes, memory_reserved_bytes, temperature_celsius, power_watts, power_limit_watts, fan_ratio, clock_sm_hertz, clock_memory_hertz, performance_state, throttle_reasons, ecc_corrected, ecc_uncorrected, energy_joules, pcie_receive_bytes_per_second, pcie_send_bytes_per_second. */
                metric?: string[] | null;
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description How many points at most; fewer if much is asked for at once. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Only of devices of this type, by its short name. */
                type?: string | null;
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description How many points at most; fewer if much is asked for at once. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description How many points at most; fewer if much is asked for at once. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description How many points at most; fewer if much is asked for at once. */
                points?: number;
                /** @description JSON, or a table with a header line. */
                format?: "json" | "csv";
            };
            header?: never;
            path: {
                /** @description The user as shown: in public a pseudonym. */
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
            /** @description Not a success; the body says why. */
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
            /** @description This hub has none. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not a success; the body says why. */
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
            /** @description This hub has none. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Words that their names must have, such as A100 80GB. */
                model?: string | null;
                /** @description Memory that each must have at least. */
                min_memory_bytes?: number | null;
                /** @description For how long without a break. */
                hours?: number;
                /** @description All on one node. */
                same_node?: boolean;
                /** @description Not before this, UTC epoch seconds; by default now. */
                since?: number | null;
                /** @description How many slots at most. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Server-sent events: first `snapshot`, then a `change` per tick, each a FleetChange. To who is logged in also `own`, an OwnCommands, after the snapshot and whenever it is another. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["FleetChange"];
                };
            };
            /** @description Not a success; the body says why. */
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
                /** @description Begin of the span, UTC epoch seconds; by default a day ago. */
                since?: number | null;
                /** @description End of the span, UTC epoch seconds; by default 8 days later. 400 days at most. */
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
            /** @description Not a success; the body says why. */
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
                /** @description What a row is of. */
                by?: "user" | "group" | "node" | "type" | "job" | "device";
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description Only of this user, as shown: in public a pseudonym. */
                user?: string | null;
                /** @description Only of this group's people. */
                group?: string | null;
                /** @description Only of this node, by its id. */
                node?: string | null;
                /** @description Only of devices of this type, by its short name. */
                type?: string | null;
                /** @description Only of this batch job. */
                job?: string | null;
                /** @description Only of the device with this UUID. */
                device?: string | null;
                /** @description How many rows at most. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description Only of devices of this type, by its short name. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description IANA time zone of days and hours; default: the hub's. */
                zone?: string | null;
                /** @description Only of devices of this type, by its short name. */
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
            /** @description Not a success; the body says why. */
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
                /** @description IANA time zone of days and hours; default: the hub's. */
                zone?: string | null;
                /** @description JSON, Markdown, or a page that needs nothing else. */
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
            /** @description Not a success; the body says why. */
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
                /** @description What a row is of. */
                by?: "user" | "group" | "node" | "type" | "job" | "device";
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description How long a step is. */
                step?: "hour" | "day" | "week" | "month";
                /** @description How many are told apart; the rest is summed up. */
                top?: number;
                /** @description IANA time zone of days and hours; default: the hub's. */
                zone?: string | null;
                /** @description Only of this user, as shown: in public a pseudonym. */
                user?: string | null;
                /** @description Only of this group's people. */
                group?: string | null;
                /** @description Only of this node, by its id. */
                node?: string | null;
                /** @description Only of devices of this type, by its short name. */
                type?: string | null;
                /** @description Only of this batch job. */
                job?: string | null;
                /** @description Only of the device with this UUID. */
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
            /** @description Not a success; the body says why. */
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
                /** @description Begin: UTC epoch seconds, ISO 8601 with or without zone, a day such as 2026-10-01, or how long ago, such as 7d. Default: 24 hours before the end. */
                from?: string | null;
                /** @description End, as the begin; a day as a whole. Default: now. */
                to?: string | null;
                /** @description Only of this user, as shown: in public a pseudonym. */
                user?: string | null;
                /** @description Only of this group's people. */
                group?: string | null;
                /** @description Only of this node, by its id. */
                node?: string | null;
                /** @description Only of devices of this type, by its short name. */
                type?: string | null;
                /** @description Only of this batch job. */
                job?: string | null;
                /** @description Only of the device with this UUID. */
                device?: string | null;
                /** @description How many at most. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
            /** @description Not a success; the body says why. */
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
