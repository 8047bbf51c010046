-- Records of all sorts, the rare ones above all: each kind of heap record, with the flags that change what redo does.
\set QUIET on
\set VERBOSITY terse

-- Inserts, one by one and many at once; updates with and without room on the page; deletions.
create table plain (id int primary key, a int, b text, c int) with (autovacuum_enabled = off);
insert into plain select g, g % 10, 'row number ' || g, g from generate_series(1, 3000) g;
create index plain_a on plain (a);
update plain set c = c + 1 where id % 3 = 0;
update plain set b = b || ' that is longer than before', a = null where id % 5 = 0;
update plain set a = a + 1 where id % 7 = 0;
delete from plain where id % 11 = 0;
vacuum plain;
-- Pages that were all-visible are changed: each kind of record clears the bit.
update plain set c = 0 where id in (1, 500, 1500);
delete from plain where id in (2, 501, 1502);
insert into plain values (10001, 1, 'into a page that was all-visible', 1);
begin; select 1 from plain where id = 700 for update; commit;
vacuum (freeze) plain;
begin; select 1 from plain where id = 700 for update; rollback;

-- Dead line pointers, line pointers used again, and those at a page's end cut off.
delete from plain where id > 1000 and id % 2 = 0;
vacuum plain;
insert into plain select g, 1, 'again ' || g, 1 from generate_series(20000, 21000) g;
delete from plain where id between 20000 and 20900;
vacuum plain;
insert into plain select g, 1, 'once more, and longer ' || g, 1 from generate_series(30000, 30500) g;
delete from plain where id > 2000;
vacuum plain;

-- HOT chains, pruned by who reads the page.
create table hot (id int primary key, n int, filler text) with (fillfactor = 60, autovacuum_enabled = off);
insert into hot select g, 0, repeat('x', 200) from generate_series(1, 300) g;
do $$ begin for i in 1..12 loop update hot set n = i where id % 4 <> 0; end loop; end $$;
do $$ begin
  for i in 1..40 loop
    update hot set n = n + i where id % 7 = i % 7;
    perform count(*) from hot;
    commit;
  end loop;
end $$;
delete from hot where id % 9 = 0;
vacuum hot;

-- Rows that were inserted and rolled back, and rows without any data.
begin; insert into hot select g, 0, 'gone' from generate_series(1000, 1100) g; rollback;
vacuum hot;
create table no_columns ();
insert into no_columns default values;
insert into no_columns select from generate_series(1, 300);
create table wide_nulls (a int, b text, c int, d text, e int, f text, g int, h text, i int, j numeric);
insert into wide_nulls (a, j) select g, g * 1.5 from generate_series(1, 200) g;
update wide_nulls set d = 'd' || a, a = null where a % 2 = 0;
update wide_nulls set b = 'b', d = null where d is not null;

-- COPY: many tuples in a record, frozen ones among them.
create table copied (id int, t text);
copy copied from program 'seq -f "%.0f	a row that was copied" 1 2000';
begin;
create table frozen (id int, t text);
copy frozen from program 'seq -f "%.0f	a row that was frozen" 1 3000' with (freeze);
commit;
insert into frozen values (0, 'clears the bit');
delete from copied where id % 3 = 0;
vacuum (freeze, index_cleanup off) copied;
copy copied from program 'seq -f "%.0f	a row that was copied into gaps" 1 900';

-- TOAST: chunks of values come and go.
create table toasted (id serial primary key, t text);
alter table toasted alter t set storage external;
insert into toasted (t) select repeat(md5(g::text), 400) from generate_series(1, 40) g;
update toasted set t = t || 'x' where id % 2 = 0;
delete from toasted where id % 3 = 0;
vacuum toasted;

-- An insertion that finds, once its tuple is on the page, that another came before: it is taken back.
create table raced (key text);
create sequence raced_calls;
create function raced_other() returns void language plpgsql volatile as $$
begin insert into raced values ('same'); end $$;
create function raced_key(key text) returns text language plpgsql immutable as $$
begin
  -- The first call looks for a conflict, the second makes the index entry.
  if current_setting('raced.calls', true) = '1' then
    perform set_config('raced.calls', '2', false);
    perform raced_other();
  elsif current_setting('raced.calls', true) = '0' then
    perform set_config('raced.calls', '1', false);
  end if;
  return key;
end $$;
create unique index on raced (raced_key(key));
insert into raced values ('first') on conflict do nothing;
insert into raced values ('first') on conflict do nothing;
select set_config('raced.calls', '0', false);
insert into raced values ('same') on conflict do nothing;
select set_config('raced.calls', '', false);
insert into raced select 'key ' || g from generate_series(1, 200) g on conflict do nothing;

-- Rows that move to another partition.
create table parts (id int, part int) partition by list (part);
create table parts_1 partition of parts for values in (1);
create table parts_2 partition of parts for values in (2);
insert into parts select g, 1 from generate_series(1, 300) g;
update parts set part = 2 where id % 3 = 0;

-- The whole old row goes to the WAL of an update and a deletion.
create table identified (id int primary key, a text, b text);
alter table identified replica identity full;
insert into identified select g, 'a' || g, 'b' || g from generate_series(1, 300) g;
update identified set b = 'changed' where id % 2 = 0;
update identified set id = id + 1000 where id % 3 = 0;
delete from identified where id % 5 = 0;

-- Foreign keys lock rows; several transactions at once make multixacts (here with savepoints).
create table parent (id int primary key, n int);
create table child (id int, parent int references parent);
insert into parent select g, 0 from generate_series(1, 100) g;
insert into child select g, g % 100 + 1 from generate_series(1, 300) g;
begin;
select 1 from parent where id <= 20 for key share;
savepoint a;
update parent set n = n + 1 where id <= 20;
savepoint b;
select 1 from parent where id <= 10 for update;
rollback to a;
commit;
vacuum (freeze) parent;

-- Sequences, catalogs in place, comments, whole relations written anew.
select count(nextval('raced_calls')) from generate_series(1, 100);
select setval('raced_calls', 1000);
alter sequence raced_calls increment by 3;
select nextval('raced_calls');
analyze;
create index concurrently plain_c on plain (c);
cluster plain using plain_pkey;
vacuum full hot;
vacuum full pg_class;
alter table toasted add column n numeric default 1.5;
truncate copied;
insert into copied select g, 'after' from generate_series(1, 100) g;
create unlogged table unlogged (id int);
insert into unlogged values (1);
alter table unlogged set logged;
insert into unlogged select g from generate_series(1, 300) g;
create database copy_of_template;
drop database copy_of_template;

-- A table that shrinks and grows again.
create table shrinking (id int, t text);
insert into shrinking select g, repeat('t', 500) from generate_series(1, 1000) g;
delete from shrinking where id > 20;
vacuum shrinking;
insert into shrinking select g, repeat('u', 400) from generate_series(1, 500) g;

-- Two-phase and subtransactions.
begin; update parent set n = 7 where id > 90; prepare transaction 'later'; commit prepared 'later';
begin; delete from parent where id > 1000; savepoint x; update parent set n = 8 where id = 50; rollback to x; commit;
vacuum (freeze);

-- Pages that are all-visible now, and are not at the end: each kind of change must have cleared the bit. The images of
-- a server that checks itself do not tell; its files do.
create table settled (id int primary key, n int, filler text) with (fillfactor = 50, autovacuum_enabled = off);
insert into settled select g, 0, repeat('s', 300) from generate_series(1, 600) g;
create table settled_too (id int, filler text) with (fillfactor = 50, autovacuum_enabled = off);
insert into settled_too select g, repeat('s', 300) from generate_series(1, 20) g;
vacuum (freeze) settled, settled_too;
delete from settled where id = 5;
update settled set n = 1 where id = 100;
update settled set id = 10100 where id = 200;
update settled set n = 2, filler = repeat('u', 5000) where id = 300;
begin; select 1 from settled where id = 400 for update; commit;
insert into settled_too values (21, 'one row');
create table settled_many (like settled_too) with (fillfactor = 50, autovacuum_enabled = off);
insert into settled_many select * from settled_too where id < 3;
vacuum (freeze) settled_many;
copy settled_many from program 'seq -f "%.0f	many rows" 1 5';

-- Updates that were rolled back leave rows that lead to a version that never was; a lock and a deletion set that right.
create table led_astray (id int, n int) with (fillfactor = 50, autovacuum_enabled = off);
insert into led_astray select g, 0 from generate_series(1, 20) g;
begin; update led_astray set n = 1; rollback;
begin; select 1 from led_astray where id <= 10 for update; commit;
delete from led_astray where id > 10;
