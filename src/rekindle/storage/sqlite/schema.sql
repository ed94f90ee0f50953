-- One file, format 1. docs/format.md describes every byte.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
-- Every agent once; numbers are given in order and never again. `newest` is told here too: a damaged page of records
-- may lose its last ones without a trace.
CREATE TABLE agents (no INTEGER PRIMARY KEY, user TEXT NOT NULL, agent TEXT NOT NULL, checksum BLOB NOT NULL,
                     newest INTEGER NOT NULL, UNIQUE (user, agent));
-- key = agents.no << 32 | seq. The head stands before the body: a listing never reads the pages of a body.
CREATE TABLE records (key INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL);
-- Ids that callers brought.
CREATE TABLE aliases (user TEXT NOT NULL, alias BLOB NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (user, alias))
  WITHOUT ROWID;
-- Where a large run lies, by its digest (keyed per user, so that users never share).
CREATE TABLE shared (digest BLOB PRIMARY KEY, key INTEGER NOT NULL, slot INTEGER NOT NULL) WITHOUT ROWID;
