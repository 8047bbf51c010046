create extension ltree;
create table nodes (
  id int primary key,
  path ltree,
  paths ltree[],
  pattern lquery,
  patterns lquery[],
  words ltxtquery
);
insert into nodes values
  (1, '', '{}', '*', '{}', 'Top'),
  (2, 'Top', '{Top}', 'Top', '{Top}', 'Top & Science'),
  (3, 'Top.Science', '{Top,Top.Science}', 'Top.*', '{Top.*,*.Science}', 'Science | Hobbies'),
  (4, 'Top.Science.Astronomy', '{Top.Science.Astronomy,Top.Science}', '*.Astronomy', '{*.a*@}', '!Astronomy'),
  (5, 'Top.Science.Astronomy.Astrophysics', '{Top.Hobbies}', '*.astro*@', '{"*.!pictures@.*{1}","*{0}"}', 'astro*@'),
  (6, 'Top.Science.Astronomy.Cosmology', '{"",a.b}', '*{1}.Science.*{1,2}', '{"*{3,}"}', '!(Science & Hobbies) | a'),
  (7, 'Top.Hobbies', '{Top.Collections.Pictures.Astronomy.Stars}', 'Top.!Science.*', '{!Top}', 'Hobbies@'),
  (8, 'Top.Hobbies.Amateurs_Astronomy', '{NULL,a}', '*.amateurs%@.*', '{NULL}', 'astronomy%@'),
  (9, 'Top.Collections.Pictures.Astronomy.Stars', '{{a},{b}}', '*.Pictures|Stars{1,2}.*', '{{a},{b}}', 'Pictures & (Stars | Galaxies)'),
  (10, 'Top.Collections.Pictures.Astronomy.Galaxies', '{a.b.c,a.b.d,a.b}', 'Top.Collections.*{2}.Galax*', '{a.*,*.Galaxies}', '!a & !b'),
  (11, 'a.b.c', '{a.b,a.b.c,a.b.c.d}', 'a.b.c', '{a.b.c}', 'a & b & c'),
  (12, 'a.b', '{b,a}', 'A@.B@', '{A@.B@}', 'A@ & B@'),
  (13, 'a.b.c.d', '{a}', 'a{1,}.*', '{"a{2}",b}', 'a | b & c | d'),
  (14, 'ab.c', '{ab}', 'a*.c', '{a*.c}', 'a*'),
  (15, 'a_b.c', '{a_b}', 'a%.c', '{b%.c}', 'b%'),
  (16, 'A.B.C', '{A}', 'a@.b@.c@', '{a@.*}', 'a@ & b@ & !c'),
  (17, 'É.ß.中', '{É}', 'é@.*', '{É*.*}', 'é@'),
  (18, 'a.b', '{a.b}', 'a.b', '{a.b}', 'a'),
  (19, NULL, NULL, NULL, NULL, NULL);
create table parts (node int, part ltree);
insert into parts select id, subpath(path, 0, n) from nodes, generate_series(1, 4) n where nlevel(path) >= n;
create table leftovers as select id, subpath(path, 1, 0) as none from nodes where nlevel(path) > 2;
create index nodes_path on nodes using btree (path);
