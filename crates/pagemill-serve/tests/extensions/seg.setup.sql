create extension seg;
-- No ~ at an upper end: minor versions differ in how they print it.
create table segs (id integer primary key, s seg);
insert into segs values
  (1, '1'), (2, '1.0'), (3, '<1'), (4, '>1'), (5, '~1'), (6, '1 .. 2'), (7, '1 .. 2.00'), (8, '1 .. <2'), (9, '<1 .. 2'), (10, '1 ..'),
  (11, '.. 1'), (12, '5 (+-) 0.3'), (13, null), (14, '-1.5 .. 0.25'), (15, '1e5 .. 1e10'), (16, '0.00012'), (17, '12345.6'), (18, '1'), (19, '<1 .. >2');
create table segs_indexed (id integer primary key, s seg);
insert into segs_indexed select n, (n % 13 || ' .. ' || n % 13 + n % 4)::seg from generate_series(1, 100) n;
create index on segs_indexed (s);
