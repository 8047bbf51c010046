-- Tables whose indexes are read from end to end: what a B-tree's pages and the chains behind its entries can be.
-- Nothing is read after it was written unless that is the point, so that hint bits stay unset.
SET synchronous_commit = off;

-- Few keys, many rows: posting lists, and after that churn of every kind.
CREATE TABLE duplicates (a int, b int, c text) WITH (fillfactor = 80, autovacuum_enabled = off);
INSERT INTO duplicates SELECT (i * 7919) % 53, i % 7, 'row ' || i FROM generate_series(1, 12000) i;
CREATE INDEX duplicates_a ON duplicates (a);
CREATE INDEX duplicates_b_a ON duplicates (b DESC, a);
CREATE INDEX duplicates_plain ON duplicates (a) WITH (deduplicate_items = off);
VACUUM duplicates;
DELETE FROM duplicates WHERE c LIKE '%3';
UPDATE duplicates SET c = c || ' hot' WHERE c LIKE '%5';
UPDATE duplicates SET a = a + 1 WHERE c LIKE '%7';
UPDATE duplicates SET c = c || ' hotter' WHERE c LIKE '%5 hot';
BEGIN; INSERT INTO duplicates SELECT i % 53, i, 'never' FROM generate_series(1, 500) i; UPDATE duplicates SET c = 'never' WHERE b = 3; ROLLBACK;
BEGIN; SAVEPOINT s; UPDATE duplicates SET b = b WHERE c LIKE '%8'; ROLLBACK TO s; DELETE FROM duplicates WHERE c LIKE '%88'; COMMIT;
INSERT INTO duplicates SELECT (i * 31) % 53, i % 7, 'late ' || i FROM generate_series(1, 3000) i;

-- The same after VACUUM, and then changed again: redirects, reused line pointers, a visibility map with holes.
CREATE TABLE vacuumed (LIKE duplicates) WITH (autovacuum_enabled = off);
INSERT INTO vacuumed SELECT * FROM duplicates;
CREATE INDEX vacuumed_a ON vacuumed (a) INCLUDE (b, c);
CREATE INDEX vacuumed_c ON vacuumed (c);
UPDATE vacuumed SET b = b + 1 WHERE c LIKE '%1';
DELETE FROM vacuumed WHERE a = 17;
VACUUM vacuumed;
UPDATE vacuumed SET b = b + 1 WHERE c LIKE 'late 11%';
DELETE FROM vacuumed WHERE c LIKE 'late 12%';

-- Whole pages emptied and deleted, some used again.
CREATE TABLE emptied (id int, v text) WITH (autovacuum_enabled = off);
INSERT INTO emptied SELECT i, 'v' || i FROM generate_series(1, 30000) i;
CREATE UNIQUE INDEX emptied_id ON emptied (id);
CREATE INDEX emptied_v ON emptied (v);
DELETE FROM emptied WHERE id BETWEEN 5000 AND 24000 OR id < 900;
VACUUM emptied; VACUUM emptied;
INSERT INTO emptied SELECT i, 'again ' || i FROM generate_series(9000, 11000) i;
DELETE FROM emptied WHERE id > 29000;
VACUUM emptied;

-- Entries that scans have marked dead.
CREATE TABLE killed (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO killed SELECT i, i % 10 FROM generate_series(1, 5000) i;
CREATE INDEX killed_id ON killed (id);
CREATE INDEX killed_v ON killed (v);
DELETE FROM killed WHERE id % 3 = 0;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(v) FROM killed WHERE id > 100; SELECT count(id) FROM killed WHERE v > 3;
RESET enable_seqscan; RESET enable_bitmapscan;

-- Inserted in no order, so that leaves were split all over.
CREATE TABLE scattered (id bigint, v text) WITH (autovacuum_enabled = off);
CREATE INDEX scattered_id ON scattered (id);
INSERT INTO scattered SELECT (i * 2654435761) % 1000003, 'v' || i FROM generate_series(1, 40000) i;

-- Orders, and nulls at either end.
CREATE TABLE orders (a int, b text, c float8, d numeric);
INSERT INTO orders SELECT nullif(i % 11, 3), nullif('t' || i % 5, 't2'), nullif(i % 3, 1) / 7.0, nullif(i % 4, 0)::numeric / 2 FROM generate_series(1, 3000) i;
CREATE INDEX orders_plain ON orders (a, b, c, d);
CREATE INDEX orders_mixed ON orders (a DESC, b NULLS FIRST, c DESC NULLS LAST, d);
CREATE INDEX orders_include ON orders (b DESC) INCLUDE (a, c, d);
CREATE INDEX orders_numeric ON orders (d, c);
INSERT INTO orders SELECT NULL FROM generate_series(1, 10);
INSERT INTO orders VALUES (1, 'x', 'NaN', 'NaN'), (1, 'x', '-0', 1.50), (1, 'x', '0', 1.5000), (1, 'x', '-infinity', 1.5);
CREATE TABLE orders_seen AS SELECT * FROM orders;
CREATE INDEX orders_seen_plain ON orders_seen (a, b, c, d);
CREATE INDEX orders_seen_mixed ON orders_seen (b NULLS FIRST) INCLUDE (d, a, c);
VACUUM orders_seen;

-- Types whose entries are not stored as the column is, or not compared by their bytes.
CREATE TABLE kinds (id serial PRIMARY KEY, n name, t text, p char(20), v varchar(50), u uuid, x "char", y oid, z bool, w bytea, i inet, r timestamptz);
INSERT INTO kinds (n, t, p, v, u, x, y, z, w, i, r)
  SELECT 'name ' || k % 40, chr(65 + k % 26) || 'ext ' || k % 17, 'p' || k % 9, 'v' || k % 19, md5((k % 50)::text)::uuid, chr(97 + k % 20)::"char",
         k % 30, k % 3 = 0, decode(md5((k % 60)::text), 'hex'), ('10.0.' || k % 4 || '.' || k % 100)::inet, '2020-01-01 00:00+00'::timestamptz + (k % 200) * interval '1 hour'
  FROM generate_series(1, 2000) k;
INSERT INTO kinds (t) SELECT repeat('long and compressible ', 100 + k) FROM generate_series(1, 30) k;
CREATE INDEX kinds_n ON kinds (n); CREATE INDEX kinds_t ON kinds (t); CREATE INDEX kinds_t_c ON kinds (t COLLATE "C" DESC);
CREATE INDEX kinds_t_pattern ON kinds (t text_pattern_ops); CREATE INDEX kinds_p ON kinds (p); CREATE INDEX kinds_v ON kinds (v varchar_pattern_ops);
CREATE INDEX kinds_u ON kinds (u); CREATE INDEX kinds_x ON kinds (x, y DESC); CREATE INDEX kinds_z ON kinds (z) INCLUDE (id);
CREATE INDEX kinds_w ON kinds (w); CREATE INDEX kinds_i ON kinds (i); CREATE INDEX kinds_r ON kinds (r);
CREATE INDEX kinds_expression ON kinds (lower(t), id); CREATE INDEX kinds_expressions ON kinds ((id % 5) DESC, (t || v));
CREATE INDEX kinds_everything ON kinds (x, u) INCLUDE (id, n, p, v, y, z, w, i, r);
CREATE TABLE names (n name, c char(8), k int); INSERT INTO names SELECT 'a name of ' || k % 60, 'c' || k % 5, k FROM generate_series(1, 500) k;
CREATE INDEX names_all ON names (n, c, k); CREATE INDEX names_c ON names (c, k) INCLUDE (n); VACUUM names;
CREATE TABLE texts (t text COLLATE "C", k int); CREATE INDEX texts_t ON texts (t, k);
INSERT INTO texts SELECT repeat('wide ' || k % 7, k % 400), k FROM generate_series(1, 1500) k; VACUUM texts;

-- Values outside of the row.
CREATE TABLE wide (id int, v text, w text);
ALTER TABLE wide ALTER w SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i * 37 % 211, repeat(md5(i::text), i), repeat(md5(i::text), 3 * i) FROM generate_series(1, 211) i;
CREATE INDEX wide_id ON wide (id); CREATE INDEX wide_md5 ON wide (md5(w));

-- Trees of no page, of one, and of one that has become empty.
CREATE TABLE never (id int); CREATE INDEX never_id ON never (id);
CREATE TABLE one_page (id int, v text); INSERT INTO one_page SELECT i % 4, 'v' || i FROM generate_series(1, 30) i; CREATE INDEX one_page_id ON one_page (id);
CREATE TABLE no_more (id int); INSERT INTO no_more SELECT generate_series(1, 4000); CREATE INDEX no_more_id ON no_more (id);
DELETE FROM no_more; VACUUM no_more;
CREATE UNLOGGED TABLE unlogged (id int); INSERT INTO unlogged SELECT i % 100 FROM generate_series(1, 1000) i; CREATE INDEX unlogged_id ON unlogged (id DESC);

-- Columns dropped and added since; a materialized view.
CREATE TABLE altered (id int, gone text, v text); INSERT INTO altered SELECT i % 50, 'gone', 'v' || i FROM generate_series(1, 1000) i;
ALTER TABLE altered DROP gone; ALTER TABLE altered ADD added int DEFAULT 42;
CREATE INDEX altered_v ON altered (v); CREATE INDEX altered_added ON altered (id, added, v);
INSERT INTO altered SELECT i % 50, 'w' || i, i FROM generate_series(1, 200) i; VACUUM altered;
CREATE MATERIALIZED VIEW seen AS SELECT a, count(*) AS n FROM orders GROUP BY a; CREATE UNIQUE INDEX seen_a ON seen (a);

-- Indexes that do not do.
CREATE TABLE choices (id int, v text, g tsvector); INSERT INTO choices SELECT i, 'v' || i FROM generate_series(1, 100) i;
CREATE INDEX choices_good ON choices (id); CREATE INDEX choices_partial ON choices (v) WHERE id > 50; CREATE INDEX choices_hash ON choices USING hash (v);
CREATE INDEX choices_invalid ON choices (v); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'choices_invalid'::regclass;
CREATE TABLE parted (id int, v text) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (100);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200); INSERT INTO parted SELECT i, 'v' FROM generate_series(1, 199) i;
CREATE INDEX parted_id ON parted (id);

-- Last: a transaction in doubt holds back what VACUUM may remove.
CREATE TABLE in_doubt (id int, v text) WITH (fillfactor = 50, autovacuum_enabled = off); INSERT INTO in_doubt SELECT i % 40, 'v' || i FROM generate_series(1, 800) i;
CREATE INDEX in_doubt_id ON in_doubt (id); CREATE INDEX in_doubt_v ON in_doubt (v); VACUUM in_doubt;
BEGIN; UPDATE in_doubt SET v = 'doubtful ' || v WHERE id = 1; UPDATE in_doubt SET id = id WHERE id = 2; DELETE FROM in_doubt WHERE id = 3;
INSERT INTO in_doubt SELECT i % 40, 'in doubt' FROM generate_series(1, 100) i; PREPARE TRANSACTION 'an order in doubt';
UPDATE in_doubt SET id = id WHERE id = 5; UPDATE in_doubt SET v = 'after ' || v WHERE id = 6;
