-- open.sql: a transaction that the server's end leaves open: what it did is undone. The lock tells that it is done.
begin;
delete from visible where id <= 10;
update roomy set n = -1 where id between 50 and 60;
insert into copied values (99, 9, 'of a transaction that never ended');
select pg_advisory_lock(1);
