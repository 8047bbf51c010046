-- Every record of every index manager, as far as one session can bring them about.
-- Small pages of few large tuples make trees high; tables that are emptied and filled again, in another order, make
-- pages split, merge, empty and come back.

-- Pages of tables are compared elsewhere.
set wal_consistency_checking = 'btree, hash, gin, gist, spgist, brin, generic';
create schema indexes;
set search_path to indexes, public;
set enable_seqscan = off;
set enable_bitmapscan = off;
select setseed(0.42);

-- B-tree: an index on an empty table gets its root with the first row.
create table tree (k int, filler text);
create unique index tree_k on tree (k);
create index tree_filler on tree (filler);
insert into tree values (1, 'first');
-- Ascending, random and descending; keys as long as they stay uncompressed make four levels.
create function key_of(i int) returns text language sql immutable as
  $$ select string_agg(md5((i * 20 + j)::text), '') from generate_series(1, 15) j $$;
insert into tree select i, key_of(i) from generate_series(2, 1500) i;
insert into tree select i, lpad(i::text, 480, '0') from generate_series(4000, 7000, 2) i order by random();
insert into tree select i, lpad(i::text, 490, '0') from generate_series(3999, 1501, -3) i;

-- Duplicates: posting lists, and room in the table between the rows that they list.
create table dup (k int, v int, t text) with (fillfactor = 50);
create index dup_k on dup (k);
create index dup_t on dup (t);
insert into dup select i % 7, i, 'text ' || i % 3 from generate_series(1, 4000) i;
delete from dup where v % 5 = 0;
vacuum dup;
-- The rows take places within the posting lists, which have to be split.
insert into dup select i % 7, i, 'text ' || i % 3 from generate_series(1, 2500) i order by random();
delete from dup where v % 3 = 0;
vacuum dup;
insert into dup select i % 7, i, 'text ' || i % 3 from generate_series(1, 4000) i order by random();
insert into dup select 100 + i % 90, i, 'text' from generate_series(1, 6000) i;
delete from dup where k >= 100 and v % 2 = 0;
vacuum dup;
insert into dup select 100 + i % 90, i, 'text' from generate_series(1, 3000) i order by random();
-- New versions with equal keys: deletion from the bottom up.
do $$ begin for i in 1..12 loop update dup set v = v + 1, t = t where v % 40 = 3; commit; end loop; end $$;
create index dup_v on dup (v);
do $$ begin for i in 1..12 loop update dup set v = v + 100000 where v % 80 = 3; commit; end loop; end $$;
do $$ begin for i in 1..12 loop update dup set v = v - 100000 where v >= 100000; commit; end loop; end $$;

-- Entries that scans find dead, and that insertions then delete.
create table dead (k int primary key, v int);
create index dead_v on dead (v);
insert into dead select i, i % 100 from generate_series(1, 1500) i;
delete from dead where k % 2 = 0;
select count(*) from dead where k between 1 and 1500;
select count(*) from dead where v between 0 and 100;
insert into dead select i, i % 100 from generate_series(2, 1500, 2) i;
insert into dead select i, i % 100 from generate_series(1501, 2500) i;

-- Pages, and with them whole subtrees, are emptied, unlinked and used again.
delete from tree where k between 4100 and 6900;
vacuum tree;
delete from tree where k between 100 and 6500;
vacuum tree;
select txid_current();
select txid_current();
vacuum tree;
insert into tree select i, key_of(i) from generate_series(100, 2500) i order by random();
delete from tree where k > 10;
vacuum tree;
select txid_current();
vacuum tree;
-- The root stays where it was, but searches begin further down: at a page that is split now.
insert into tree select i, key_of(i) from generate_series(11, 1200) i;
delete from tree;
vacuum tree;
select txid_current();
vacuum tree;
insert into tree select i, key_of(i) from generate_series(1, 500) i order by random();

-- Concurrent builds, included columns, nulls.
create index concurrently dup_all on dup (k, v) include (t);
insert into dup select null, i, null from generate_series(1, 500) i;
reindex index dup_k;

-- Hash: buckets are split, chains grow, and shrink again.
create table hashed (k int, t text);
create index hashed_k on hashed using hash (k);
create index hashed_t on hashed using hash (t) with (fillfactor = 30);
insert into hashed select i, 'value ' || i from generate_series(1, 2500) i;
insert into hashed select 5, 'value' from generate_series(1, 1800) i;
insert into hashed select 6, 'value' from generate_series(1, 1800) i;
delete from hashed where k = 5 and ctid > (select ctid from hashed where k = 5 order by ctid offset 900 limit 1);
insert into hashed select i % 40, 'value ' || i % 40 from generate_series(1, 2500) i order by random();
delete from hashed where k = 5 and ctid < (select max(ctid) from hashed where k = 5);
vacuum hashed;
insert into hashed select i, 'value ' || i from generate_series(4001, 6500) i order by random();
delete from hashed where k % 3 <> 0;
vacuum hashed;
delete from hashed where k = 6 and random() < 0.6;
vacuum hashed;
insert into hashed select i % 20, 'value ' || i % 20 from generate_series(1, 2000) i;
delete from hashed where k between 3 and 12;
select count(*) from hashed where k = 4;
select count(*) from hashed where k = 5;
select count(*) from hashed where k = 6;
insert into hashed select i % 12, 'value ' || i % 12 from generate_series(1, 1500) i;
delete from hashed where k % 2 = 0;
vacuum hashed;
delete from hashed;
vacuum hashed;
insert into hashed select i, 'again ' || i from generate_series(1, 500) i;

-- BRIN: more ranges than one page of the range map has; pages of summaries that have to make room for it.
create table ranged (k int, t text, i inet) with (fillfactor = 10, autovacuum_enabled = off);
create index ranged_k on ranged using brin (k) with (pages_per_range = 1);
create index ranged_t on ranged using brin (t) with (pages_per_range = 2);
create index ranged_multi on ranged using brin (k int4_minmax_multi_ops) with (pages_per_range = 4);
create index ranged_bloom on ranged using brin (k int4_bloom_ops) with (pages_per_range = 8);
create index ranged_inet on ranged using brin (i inet_inclusion_ops) with (pages_per_range = 3);
insert into ranged select i, repeat(md5(i::text), 4), ('10.0.' || i % 250 || '.1')::inet
  from generate_series(1, 9000) i;
select brin_summarize_new_values('ranged_k');
select brin_summarize_range('ranged_t', 0);
vacuum ranged;
update ranged set k = k + 1000000, t = 'z' || repeat(t, 5) where k % 300 = 0;
update ranged set t = repeat(md5(k::text), 20) where k % 170 = 0;
update ranged set t = 'a' || repeat(md5(k::text), 35) where k % 130 = 0;
insert into ranged select i, repeat(md5(i::text), 12), '192.168.1.1' from generate_series(9001, 12000) i;
vacuum ranged;
do $$ begin for i in 0..60 loop perform brin_desummarize_range('ranged_k', i * 7); end loop; end $$;
select brin_desummarize_range('ranged_t', 6);
select brin_summarize_new_values('ranged_k');
select brin_summarize_new_values('ranged_t');
delete from ranged where k < 500000;
vacuum ranged;

-- GiST: points, ranges under an exclusion constraint, and text search.
create table shapes (p point, b box, r int4range, k int, words tsvector);
create index shapes_p on shapes using gist (p);
create index shapes_b on shapes using gist (b);
create index shapes_r on shapes using gist (r);
create index shapes_words on shapes using gist (words);
insert into shapes select point(random() * 100, random() * 100),
    box(point(random() * 90, random() * 90), point(random() * 100, random() * 100)),
    int4range(i, i + (random() * 50)::int + 1), i, to_tsvector('simple', md5((i % 500)::text) || ' word' || i % 50)
  from generate_series(1, 2500) i;
delete from shapes where k % 3 = 0;
vacuum shapes;
insert into shapes select point(i, -i), box(point(i, i), point(i + 1, i + 1)), int4range(-i, 1 - i), i, null
  from generate_series(1, 700) i;
update shapes set p = point(k, k) where k % 11 = 0;
delete from shapes where k between 200 and 5500;
select count(*) from shapes where p <@ box(point(0, 0), point(100, 100));
select count(*) from shapes where b && box(point(0, 0), point(100, 100));
select count(*) from shapes where r && int4range(0, 10000);
insert into shapes select point(random() * 100, random() * 100),
    box(point(random() * 90, random() * 90), point(random() * 100, random() * 100)), int4range(i, i + 1), i, null
  from generate_series(1, 1200) i;
delete from shapes where k > 30;
vacuum shapes;
select txid_current();
select txid_current();
vacuum shapes;
insert into shapes select point(random() * 100, random() * 100), null, int4range(i, i + 5), i, null
  from generate_series(1, 1200) i;
create table booked (r int4range, exclude using gist (r with &&));
insert into booked select int4range(i * 10, i * 10 + 9) from generate_series(1, 2500) i order by random();
-- Index scans that find dead entries, one by one.
delete from booked where lower(r) % 20 = 0;
do $$ begin for i in 1..2500 loop perform 1 from booked where r && int4range(i * 10, i * 10 + 9); end loop; end $$;
insert into booked select int4range(i * 10, i * 10 + 5) from generate_series(2, 2500, 2) i order by random();
-- Keys of 2 kB make a high tree.
create table signed (k int, words tsvector);
create index signed_words on signed using gist (words tsvector_ops (siglen = 1900));
insert into signed select i, to_tsvector('simple', md5(i::text) || ' ' || md5((i % 90)::text))
  from generate_series(1, 1500) i;
delete from signed where k % 5 < 3;
vacuum signed;
insert into signed select i, to_tsvector('simple', md5((-i)::text) || ' word') from generate_series(1, 700) i;
create index shapes_later on shapes using gist (p, b);

-- SP-GiST: prefixes that are split, nodes that are added, quadrants, nets, nulls.
create table spaces (t text, p point, q point, i inet, r int4range, k int);
create index spaces_t on spaces using spgist (t);
create index spaces_p on spaces using spgist (p);
create index spaces_q on spaces using spgist (q kd_point_ops);
create index spaces_i on spaces using spgist (i);
create index spaces_r on spaces using spgist (r);
insert into spaces values ('root leaf', point(1, 1), point(1, 1), '10.0.0.1', int4range(1, 2), 0);
delete from spaces;
vacuum spaces;
insert into spaces select 'https://example.org/' || case i % 3 when 0 then 'path/' || md5(i::text) when 1 then
      repeat('long ', i % 60) || i else chr(33 + i % 90) || md5((i % 7)::text) || i end,
    point((random() * 1000)::int, (random() * 1000)::int), point(random(), random()),
    ('10.' || i % 200 || '.' || i / 200 || '.0/' || 8 + i % 25)::inet, int4range(i, i + i % 40 + 1), i
  from generate_series(1, 1600) i order by random();
insert into spaces select null, null, null, null, null, i from generate_series(1, 800) i;
insert into spaces select 'https://example.org/same', point(7, 7), point(7, 7), '10.0.0.0/8', 'empty', i
  from generate_series(1, 800) i;
insert into spaces select chr(48 + i % 70) || repeat(chr(97 + i % 20), i % 90), point(i, i), null, null, null, i
  from generate_series(1, 900) i;
delete from spaces where k % 4 = 0;
vacuum spaces;
insert into spaces select md5(i::text), point(-i, i), point(i, -i), ('fe80::' || to_hex(i))::inet, int4range(-i, i), i
  from generate_series(1, 900) i;
delete from spaces where k % 3 > 0;
vacuum spaces;
select txid_current();
select txid_current();
vacuum spaces;
insert into spaces select 'https://example.com/' || i, point(i % 50, i / 50), null, null, null, i
  from generate_series(1, 900) i;
-- Inner tuples that start on one page and get more and more nodes.
create table grown (t text, k int);
create index grown_t on grown using spgist (t);
do $$ begin for c in 0..60 loop
  insert into grown select chr(48 + p) || repeat(chr(97 + p), p % 5) || chr(33 + (c * 37) % 91) || md5((p * c + r)::text), c
    from generate_series(0, 14) p, generate_series(1, 7) r;
end loop; end $$;
delete from grown where k % 3 = 0;
vacuum grown;
insert into grown select chr(33 + (i * 37) % 91) || md5(i::text), i from generate_series(1, 1500) i;
delete from spaces;
vacuum spaces;
create index spaces_later on spaces using spgist (t) include (k);

-- GIN: with and without the list of tuples that are not sorted in; lists long enough for trees of their own.
create table sets (a int[], k int) with (fillfactor = 60);
create index sets_fast on sets using gin (a) with (fastupdate = on, gin_pending_list_limit = 128);
create index sets_slow on sets using gin (a) with (fastupdate = off);
insert into sets select array[1, i, i % 10, 100000 + i % 1000], i from generate_series(1, 2500) i;
select gin_clean_pending_list('sets_fast');
insert into sets select array_agg(j), i from generate_series(1, 80) i, generate_series(i, i + 150) j group by i;
delete from sets where k % 4 = 0;
vacuum sets;
insert into sets select array[1, 2, i], i from generate_series(1, 1500) i order by random();
insert into sets select null, i from generate_series(1, 300) i;
insert into sets select '{}', i from generate_series(1, 300) i;
-- A tree of one key over tables of wide rows, whose distances take several bytes each.
create table wide (a int[], filler text);
create index wide_a on wide using gin (a) with (fastupdate = off);
alter table wide alter filler set storage plain;
insert into wide select array[7], repeat('x', 2500) from generate_series(1, 14000) i;
delete from wide where ctid < '(3000,1)';
vacuum wide;
insert into wide select array[7], repeat('x', 100) from generate_series(1, 1000) i;
delete from wide;
vacuum wide;
delete from sets where k % 5 > 0;
vacuum sets;
insert into sets select array[i % 100, i % 10], i from generate_series(1, 3000) i;
select gin_clean_pending_list('sets_fast');
delete from sets;
vacuum sets;
create table documents (words tsvector);
create index documents_words on documents using gin (words);
insert into documents select to_tsvector('simple', md5(i::text) || ' ' || md5((i % 100)::text) || ' word' || i % 30)
  from generate_series(1, 1000) i;
vacuum documents;

-- Generic records: an index of an extension.
create extension bloom;
create table filtered (a int, b int, c text);
create index filtered_all on filtered using bloom (a, b, c);
insert into filtered select i, i % 100, md5(i::text) from generate_series(1, 1500) i;
delete from filtered where a % 3 = 0;
vacuum filtered;
insert into filtered select i, i % 100, md5(i::text) from generate_series(1501, 2200) i;
delete from filtered where a > 50;
vacuum filtered;
insert into filtered select i, i % 100, md5(i::text) from generate_series(1, 500) i;

-- Unlogged indexes write their init forks.
create unlogged table forgotten (k int, a int[], p point, t text);
create index on forgotten (k);
create index on forgotten using hash (k);
create index on forgotten using gin (a);
create index on forgotten using gist (p);
create index on forgotten using spgist (t);
create index on forgotten using brin (k);
