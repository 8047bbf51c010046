create extension citext;
create table users (id int primary key, email citext unique, nick citext collate "C", note text);
insert into users
select i, case i % 3 when 0 then upper('user' || i || '@example.com') when 1 then 'User' || i || '@Example.com' else 'user' || i || '@example.com' end,
    case when i % 4 = 0 then 'Nick' else 'nICK' end || i % 7, case when i % 5 = 0 then null else 'USER' || i || '@example.com' end
from generate_series(1, 60) i;
insert into users values (100, null, null, null), (101, '', '', ''), (102, 'Ünïcode', 'Straße', 'ünïcode');
create domain mail as citext check (value <> 'nobody');
create table lists (id int, mails citext[], owner mail, at citext default 'X');
insert into lists values (1, '{a,B,c}', 'A'), (2, '{b,NULL}', 'b'), (3, '{}', null);
create view shouted as select id, upper(email::text) as loud from users where email like 'USER1%';
create index on users (lower(email));
analyze;
