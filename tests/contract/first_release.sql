-- The records as the first release made them, with something in them. Not to be changed.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE nodes (
    id VARCHAR(64) NOT NULL,
    name VARCHAR(128) NOT NULL,
    enrolled_at DOUBLE NOT NULL,
    CONSTRAINT pk_nodes PRIMARY KEY (id)
);
CREATE TABLE node_credentials (
    digest VARCHAR(64) NOT NULL,
    node_id VARCHAR(64) NOT NULL,
    created_at DOUBLE NOT NULL,
    CONSTRAINT pk_node_credentials PRIMARY KEY (digest),
    CONSTRAINT fk_node_credentials_node_id FOREIGN KEY(node_id) REFERENCES nodes (id) ON DELETE CASCADE
);
CREATE INDEX ix_node_credentials_node_id ON node_credentials (node_id);
CREATE TABLE join_tokens (
    digest VARCHAR(64) NOT NULL,
    created_at DOUBLE NOT NULL,
    expires_at DOUBLE NOT NULL,
    uses_left INTEGER NOT NULL,
    CONSTRAINT pk_join_tokens PRIMARY KEY (digest)
);
CREATE TABLE node_revision (
    id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    CONSTRAINT pk_node_revision PRIMARY KEY (id)
);
INSERT INTO node_revision VALUES (1, 41);
INSERT INTO nodes VALUES ('a', 'Ä', 5.5);
INSERT INTO node_credentials VALUES ('d1', 'a', 6.5);
INSERT INTO join_tokens VALUES ('t1', 1, 1e12, 3)
