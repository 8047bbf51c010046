-- Texts.
select '1'::cube, '1,2'::cube, '(1,2)'::cube, '(1,2),(3,4)'::cube, '[(1,2),(3,4)]'::cube
select ' ( 1 , 2 ) , ( 1.0 , 2e0 ) '::cube, '()'::cube, '(),()'::cube, '[(),()]'::cube
select '(+1.,-.5,1e5,1E-5,1e+15,123456789012345678)'::cube
select '(inf,-inf,Infinity,-INFINITY,nan,NaN)'::cube, '(nan),(nan)'::cube, '(-0),(0)'::cube, '(0),(-0)'::cube
select '(0.1,0.2,0.30000000000000004,1e-300,4.9e-324)'::cube, '(1,2),(1,3)'::cube
select '1e-400'::cube
select '1e400'::cube
select '(1e400) x'::cube
select ''::cube
select 'abc'::cube
select '(1,2'::cube
select '(1,2),(3)'::cube
select '(1,2),(3) x'::cube
select '[(1),(2)'::cube
select '[(1)]'::cube
select '(1),(2),(3)'::cube
select '1 2'::cube
select '1e'::cube
select '1,'::cube
select '(1),2'::cube
select '-nan'::cube
select '0x10'::cube
select ('(' || repeat('0,', 99) || '0)')::cube = cube(array_fill(0::float8, array[100]))
select ('(' || repeat('0,', 100) || '0)')::cube
select null::cube
select '(1,2)'::cube::text, c::text || '!' from (values ('(1),(2)'::cube)) v(c)
-- Made of numbers.
select cube(1), cube(1.5, 2), cube(1, 1), cube('nan'::float8), cube('nan'::float8, 'nan')
select cube(cube(1), 2), cube(cube(1, 2), 3), cube(cube(1), 2, 3), cube(cube(1), 2, 2), cube(cube(1, 2), 3, 4)
select cube(array[1, 2, 3]::float8[]), cube(array[1, 2]::float8[], array[3, 4]::float8[]), cube('{}'::float8[]), cube('{}'::float8[], '{}'::float8[])
select cube(array[1, 2]::float8[], array[1, 2]::float8[]), cube('{{1,2},{3,4}}'::float8[])
select cube(array[1, null]::float8[])
select cube(array[1, 2]::float8[], array[1, null]::float8[])
select cube(array[1, 2]::float8[], array[1]::float8[])
select cube(array_fill(1::float8, array[101]))
select cube(array_fill(1::float8, array[101]), array[1]::float8[])
select cube(cube(array_fill(1::float8, array[100])), 1)
select cube(cube(array_fill(1::float8, array[100])), 1, 2)
select cube(null::float8), cube(null::cube, 1), cube(null::float8[])
select cube_subset('(1,3,5),(6,7,8)', array[3, 2, 1, 1]), cube_subset('(1,3,5)', array[3, 2, 1, 1]), cube_subset('(1,2),(1,4)', array[1]), cube_subset('(1,2)', '{}')
select cube_subset('(1,3,5)', array[4, 0])
select cube_subset('(1,3,5)', array[0])
select cube_subset('(1,3,5)', array[1, null])
select cube_subset('(1,3,5)', array_fill(1, array[101]))
select cube_is_point(cube_subset('(1,2),(1,4)', array[1])), cube_subset('(1,2),(1,4)', array[1]) = '(1)'
-- Made of cubes.
select cube_union('(1,2),(3,4)', '(0)'), cube_union('(1)', '(1)'), cube_union('(2),(1)', '(1),(2)'), cube_union('()', '(1)'), cube_union('()', '()')
select cube_inter('(1,2),(10,11)', '(0,0),(5,5)'), cube_inter('(1),(2)', '(3),(4)'), cube_inter('(1,2)', '(1)'), cube_inter('()', '(1)')
select cube_union('(1,2)', '(3,-4,5)'), cube_inter('(1,2,3)', '(0),(5)'), cube_union('(1,2)', null), cube_inter(null, '(1)')
select cube_enlarge('(0)', 1, 0), cube_enlarge('(0)', 1, 2), cube_enlarge('(0)', 0, 2), cube_enlarge('(0)', -1, 2), cube_enlarge('(2),(-2)', -1, 2)
select cube_enlarge('(2),(-2)', -3, 2), cube_enlarge('(42,-23),(-23,42)', -23, 5), cube_enlarge('(42,-23),(-23,42)', -24, 5), cube_enlarge('()', 1, 1), cube_enlarge('(1)', 0.5, -3)
select cube_dim(cube_enlarge('(1)', 1, 1000)), cube_enlarge('(1)', 'nan', 2), cube_enlarge('(1)', 'inf', 1)
-- Measures.
select cube_dim('()'), cube_dim('(1,2,3)'), cube_is_point('(1)'), cube_is_point('(1),(2)'), cube_is_point('(nan),(nan)'), cube_is_point('()')
select cube_size('(4,8),(15,16)'), cube_size('(42,137)'), cube_size('()'), cube_size('(3),(1)'), cube_size('(0),(inf)')
select cube_ll_coord('(4,2),(1,3)', 1), cube_ll_coord('(4,2),(1,3)', 2), cube_ll_coord('(4,2),(1,3)', 3), cube_ll_coord('(4,2)', 0), cube_ll_coord('(4,2)', -1)
select cube_ur_coord('(4,2),(1,3)', 1), cube_ur_coord('(4,2),(1,3)', 2), cube_ur_coord('(4,2),(1,3)', 3), cube_ur_coord('(4,2)', 0), cube_ur_coord('(4,2)', 2)
select '(4,2),(1,3)'::cube -> 1, '(4,2),(1,3)'::cube -> 4, '(4,2)'::cube -> 3, cube_coord('(4,2)', 2)
select '(4,2)'::cube -> 5
select '(4,2)'::cube -> 0
select '(4,2)'::cube -> -1
select '()'::cube -> 1
select '(4,2),(1,3)'::cube ~> 1, '(4,2),(1,3)'::cube ~> 2, '(4,2),(1,3)'::cube ~> 3, '(4,2),(1,3)'::cube ~> 4, '(4,2),(1,3)'::cube ~> 5, cube_coord_llur('(4,2)', 2)
select '(4,2),(1,3)'::cube ~> -1, '(4,2),(1,3)'::cube ~> -4, '(4,2)'::cube ~> -2, '(4,2)'::cube ~> -9, '(4,2)'::cube ~> (-2147483648)
select '(4,2)'::cube ~> 0
select '(0,0)'::cube <-> '(3,4),(5,6)', '(0,0)'::cube <#> '(3,4),(5,6)', '(0,0)'::cube <=> '(3,4),(5,6)'
select cube_distance('(1,1)', '(4,5)'), distance_taxicab('(1,1)', '(4,5)'), distance_chebyshev('(1,1)', '(4,5)')
select cube_distance('(1)', '(4,5)'), distance_taxicab('(1,1,1)', '(4)'), distance_chebyshev('()', '(4,5)'), cube_distance('(0),(10)', '(5)'), cube_distance('(1)', null)
select cube_distance('(nan)', '(1)'), distance_taxicab('(inf)', '(1)'), distance_chebyshev('(inf)', '(-inf)'), cube_distance('(1e200)', '(-1e200)'), cube_distance('(0.1)', '(0.3)')
-- Relations.
select '(1),(3)'::cube @> '(2)', '(1),(3)'::cube @> '(2,0)', '(1),(3)'::cube @> '(2,1)', '(2)'::cube <@ '(1),(3)', '(2,9)'::cube <@ '(1),(3)', null::cube @> '(1)'
select '(1),(3)'::cube && '(2),(4)', '(1),(3)'::cube && '(3)', '(1),(3)'::cube && '(4)', '(1),(3)'::cube && '(2,1)', '(1),(3)'::cube && '(2,-1),(2,1)', '()'::cube && '(0)'
select cube_contains('(1),(3)', '(2)'), cube_contained('(1),(3)', '(2)'), cube_overlap('(1),(3)', '(2)')
select '(1)'::cube = '(1)', '(1)'::cube = '(1,0)', '(2),(1)'::cube = '(1),(2)', '(1)'::cube <> '(2)', '(0)'::cube = '(-0)', '(nan)'::cube = '(nan)', '(nan)'::cube = '(1)'
select '(1)'::cube < '(2)', '(1)'::cube > '(2)', '(1)'::cube <= '(1)', '(1)'::cube >= '(1,1)', '(1)'::cube < '(1,0)', '(1,-1)'::cube < '(1)', null::cube < '(1)'
select cube_cmp('(1)', '(2)'), cube_cmp('(1,2),(3,4)', '(1,2),(3,5)'), cube_cmp('(1)', '(1)'), cube_cmp('(1,0)', '(1)'), cube_cmp('(0),(3)', '(0,-1),(4,0)')
select cube_eq('(1)', '(1)'), cube_ne('(1)', '(1)'), cube_lt('(1)', '(1)'), cube_gt('(1)', '(1)'), cube_le('(1)', '(1)'), cube_ge('(1)', '(1)')
select '(1)'::cube = 1
select cube('a')
-- A table.
select id, c, cube_dim(c), cube_size(c), cube_is_point(c) from cubes order by id
select id, c ~> 1, c ~> -2, cube_ll_coord(c, n), cube_ur_coord(c, n), cube_enlarge(c, 1, n) from cubes order by id
select id, c <-> '(1,1)', c <#> '(1,1)', c <=> '(1,1)' from cubes order by id
select id, c from spots order by c, id
select id, c from spots order by c desc, id
select cube_inter(d, d) from (select distinct c as d from spots) s order by d
select cube_inter(c, c), count(*) from spots group by c order by c
select count(distinct c) from spots
select id from cubes where c @> '(1,2)' order by id
select id from cubes where c && '(2,3),(5,5)' order by id
select id from cubes where c = '(1,2)' order by id
select id from spots where c < '(1,2),(3,4)' order by id
select id from spots where c >= '(1,2),(3,4)' order by id
select a.id, b.id from cubes a join spots b on a.c = b.c order by 1, 2
select a.id, b.id from cubes a join cubes b on a.c <@ b.c and a.id <> b.id order by 1, 2
select id, cube_union(c, '(0,0)'), cube_inter(c, '(0,0),(2,2)') from cubes order by id
select id, row_number() over (order by c, id), rank() over (order by c) from spots order by id
select a.id from spots a where a.c in (select c from cubes where id < 5) order by a.id
select array_agg(c order by c, id) from spots
select id from spots_indexed where c = '(3, 3),(3, 3)' order by id
select id from spots_indexed where c <@ '(0,0),(3,3)' order by id
select id, c <-> '(3,3)' as d from spots_indexed order by d, id limit 8
select cube_inter(c, c), count(*) from spots_indexed group by c having count(*) > 1 order by c
