-- tables.sql: what the work of a sample begins with: rows that are all frozen, so that the bits of their pages are set.
-- What is done to them stands in work.sql and open.sql. Nothing here is part of the sample's WAL.

-- Pages full but for a little, so that an update stays on its page or leaves it, as its row is short or long. The
-- last page has room.
create table plain (id int, n int, filler text) with (autovacuum_enabled = off);
insert into plain select g, 0, repeat('p', 300) from generate_series(1, 250) g;
create index plain_n on plain (n);

-- Pages with room each, for rows that come from others.
create table roomy (id int, n int, filler text) with (autovacuum_enabled = off, fillfactor = 50);
alter table roomy alter filler set storage plain;
insert into roomy select g, 0, repeat('r', 300) from generate_series(1, 100) g;

-- One page; COPY fills it up.
create table copied (id int, n int, filler text) with (autovacuum_enabled = off);
insert into copied select g, 0, repeat('c', 100) from generate_series(1, 20) g;

-- Pages whose rows are visible to all, but not frozen.
create table visible (id int, n int, filler text) with (autovacuum_enabled = off);

-- Pages far from one another; make.sh lays the second one.
create table far (id int, n text, filler text) with (autovacuum_enabled = off);
insert into far select g, 0, repeat('f', 900) from generate_series(1, 8) g;

vacuum (freeze) plain, roomy, copied;
