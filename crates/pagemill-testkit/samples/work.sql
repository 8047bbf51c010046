-- work.sql: each kind of record that clears bits of the visibility map and names the map's page, with the references that
-- the kind can have; and records that set bits, so that there are some to clear again.
--
-- Where a row goes follows from the room on pages: see tables.sql.
\set VERBOSITY terse

-- An update from a page to another whose bits are on another page of the map: references 2 and 3. The row is
-- locked first, which clears a bit of the old page alone.
update far set n = 'moved' where id = 3;

-- One row, and many, into the last page.
insert into plain values (1001, 0, 'into a page that was frozen');
copy copied from stdin with (delimiter ',');
21,1,many rows
22,1,in one record
23,1,of a page that was frozen
\.

-- A lock clears one bit of two, and the deletion of a row of the same page the other one.
begin;
select id from plain where id = 30 for update;
commit;
delete from plain where id = 31;
-- From a full page to one with room. Only the old one was frozen; then both; then neither.
update plain set filler = repeat('q', 600) where id = 150;
vacuum (freeze) plain;
update plain set filler = repeat('q', 600) where id = 1;
update plain set filler = repeat('q', 600) where id = 2;
-- Within a page, with a new key in an index.
vacuum (freeze) plain;
update plain set n = 1 where id = 250;

-- To a page that begins with the row.
update roomy set filler = repeat('s', 7000) where id = 1;
-- Within a page, with no index.
update roomy set n = 1 where id % 10 = 0;
delete from roomy where id % 4 = 0;
select count(*) from roomy;
vacuum roomy;
update roomy set n = n + 1 where id % 10 = 5;
select count(*) from roomy;
vacuum (freeze) roomy;

-- Visible, but not frozen: a lock has no bit to clear, and names no page of the map.
insert into visible select g, 0, repeat('v', 300) from generate_series(1, 60) g;
vacuum visible;
begin;
select id from visible where id = 1 for share;
commit;
update visible set n = 1 where id = 2;
delete from visible where id = 40;
vacuum (freeze) visible;

-- What is undone, and rows that are frozen as they are copied.
begin;
delete from copied;
insert into copied values (31, 2, 'undone');
rollback;
vacuum (freeze) copied;
begin;
truncate copied;
copy copied from stdin with (freeze, delimiter ',');
41,1,frozen
42,1,at once
\.
commit;
insert into copied values (43, 1, 'beside frozen rows');
vacuum (freeze) plain;
delete from plain where id between 61 and 70;
