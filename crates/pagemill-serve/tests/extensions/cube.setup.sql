create extension cube;
create table cubes (id integer primary key, c cube, n integer);
insert into cubes values
  (1, '(1)', 1), (2, '(1, 2)', 1), (3, '(1, 2),(3, 4)', 2), (4, '(3, 4),(1, 2)', -1), (5, '(3, 2),(1, 4)', 3),
  (6, '(0)', 0), (7, '()', 1), (8, null, 1), (9, '(1, 2, 3)', 6), (10, '(1, 0)', -4), (11, '(-1, 5, 2),(2, 5, 0.5)', 5),
  (12, '(1e10, 1e-7)', 2), (13, '(inf),(-inf)', 2), (14, '(1, 2)', 4), (15, '(0, 0),(0, 1)', null);
create table spots (id integer primary key, c cube);
insert into spots select id, c from cubes where cube_dim(c) = 2;
create table spots_indexed (id integer primary key, c cube);
insert into spots_indexed select n, cube(array[n % 7, n % 11]::float8[], array[n % 5, n % 11]::float8[]) from generate_series(1, 120) n;
create index on spots_indexed (c);
