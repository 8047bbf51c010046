-- query_int
select '1&2'::query_int, ' 1 | 2 & ! 3'::query_int, '!(1|2)&3'::query_int, '1|2|3|4'::query_int, '(1)'::query_int
select '!!1'::query_int, '!(!(1))'::query_int, '1&(2|3)&4'::query_int, '((1&2)|(3&4))&5'::query_int
select '-5'::query_int, '-'::query_int, '010'::query_int, '-010'::query_int, '08'::query_int, '2147483647'::query_int, '-2147483648'::query_int
select null::query_int
select ''::query_int
select ' '::query_int
select '1 2'::query_int
select '1&'::query_int
select '&1'::query_int
select '(1'::query_int
select '1)'::query_int
select '1&()'::query_int
select 'a'::query_int
select '2147483648'::query_int
select '000000000000001'::query_int
select '0000000000000001'::query_int
select '!!!!!!!!!!!!!!!!1'::query_int
select '!!!!!!!!!!!!!!!!!1'::query_int
select ('1&(' || repeat('1|', 16382) || '1)')::query_int is null
select querytree('1&2'::query_int)
select querytree(null::query_int)
-- matching
select '{1,2,3}'::int[] @@ '1&2'::query_int, '{1,2,3}'::int[] @@ '1&4'::query_int, '{1,2,3}'::int[] @@ '!4'::query_int, '{}'::int[] @@ '!1'::query_int, '{}'::int[] @@ '1'::query_int
select '1&(2|4)'::query_int ~~ '{1,4}'::int[], '!(1|2)'::query_int ~~ '{3}'::int[], boolop('{3,1}', '3'), rboolop('3', '{3,1}')
select null::int[] @@ '1'::query_int, '{1}'::int[] @@ null::query_int
select '{1,null}'::int[] @@ '1'::query_int
select '{{1,2},{3,4}}'::int[] @@ '4&!5'::query_int
-- sets
select '{3,1,2}'::int[] @> '{1,2}'::int[], '{1,1}'::int[] @> '{1,1,1}'::int[], '{1}'::int[] @> '{}'::int[], '{}'::int[] @> '{1}'::int[], '{}'::int[] @> '{}'::int[]
select '{1,2}'::int[] <@ '{3,1,2}'::int[], '{}'::int[] <@ '{}'::int[], '{4}'::int[] <@ '{1}'::int[]
select '{1,2}'::int[] && '{2,3}'::int[], '{1}'::int[] && '{2}'::int[], '{}'::int[] && '{}'::int[], '{{1,2}}'::int[] && '{2}'::int[]
select _int_contains('{1,2}', '{1}'), _int_contained('{1}', '{1,2}'), _int_overlap('{1}', '{1}'), _int_same('{1,2,1}', '{2,1,1}'), _int_different('{1}', '{1,1}')
select '{1,null}'::int[] @> '{1}'::int[]
select '{1}'::int[] && '{null}'::int[]
select _int_same('{null}', '{1}')
select _int_contains(null, '{1}'), _int_overlap('{1}', null), _int_same(null, null)
select '{3,1,3}'::int[] | '{2,1}'::int[], '{}'::int[] | '{}'::int[], '{2,1,2}'::int[] | '{}'::int[], '{{2,1}}'::int[] | '{7}'::int[]
select '{3,1}'::int[] | 2, '{}'::int[] | 5, '{5,5}'::int[] | 5, intset_union_elem('{{9,8}}', 1)
select '{3,1,3}'::int[] & '{3,4}'::int[], '{1}'::int[] & '{2}'::int[], '{}'::int[] & '{1}'::int[], _int_inter('{2,2,1}', '{1,2,2}')
select '{3,1,3}'::int[] - '{1}'::int[], '{1}'::int[] - '{1}'::int[], '{3,2,1,1}'::int[] - '{}'::int[], intset_subtract('{}', '{1}')
select '{1,null}'::int[] | '{1}'::int[]
select '{1}'::int[] - '{null}'::int[]
select '{1}'::int[] & null::int[], null::int[] | 1
select intset(5), intset(-2147483648), intset(null)
-- lists
select # '{1,2,3}'::int[], # '{}'::int[], # '{{1,2},{3,4}}'::int[], # '{1,null}'::int[], icount(null)
select sort('{3,1,2}'), sort('{3,1,2}', 'asc'), sort('{3,1,2}', 'DESC'), sort('{3,1,2}', 'dEsC'), sort('{}', 'x'), sort('{1}', 'x'), sort('{{4,3},{2,1}}')
select sort('{3,1,2}', 'up')
select sort('{3,1,2}', '')
select sort('{3,null}')
select sort('{1}', null), sort(null)
select sort_asc('{3,-1,2}'), sort_desc('{3,-1,2}'), sort_asc('{}'), sort_desc('[5:6]={1,2}'), sort_desc('{{1,2},{3,4}}')
select uniq('{1,1,2,1}'), uniq('{}'), uniq('{1}'), uniq('{{1,1},{2,2}}'), uniq('[3:5]={7,7,7}'), uniq(sort('{3,1,3,1}'))
select uniq('{1,null}')
select idx('{5,6,6}', 6), '{5,6}'::int[] # 5, idx('{}', 1), idx('{1}', 2), idx('[7:8]={1,2}', 2), idx(null, 1), idx('{1}', null)
select idx('{1,null}', 1)
select subarray('{1,2,3,2,1}', 2), subarray('{1,2,3,2,1}', 0), subarray('{1,2,3,2,1}', -2), subarray('{1,2,3,2,1}', -9), subarray('{1,2,3,2,1}', 9), subarray('{}', 1)
select subarray('{1,2,3,2,1}', 2, 2), subarray('{1,2,3,2,1}', 0, -1), subarray('{1,2,3,2,1}', -2, 1), subarray('{1,2,3,2,1}', 2, 0), subarray('{1,2,3,2,1}', 2, -9), subarray('{1,2,3,2,1}', 1, 99)
select subarray('{{1,2},{3,4}}', 2, 2), subarray('[0:2]={1,2,3}', 2), subarray(null, 1), subarray('{1}', 1, null)
select subarray('{1,2}', -2147483648), subarray('{1,2}', 2147483647), subarray('{1,2}', 1, -2147483648), subarray('{1,2}', 1, 2147483647)
select subarray('{1,null}', 1)
select '{1,2}'::int[] + 3, '{}'::int[] + 3, '{{1,2}}'::int[] + 3, intarray_push_elem('{1}', 1), intarray_push_elem(null, 1)
select '{1,2}'::int[] + '{2,3}'::int[], '{}'::int[] + '{}'::int[], '{{1,2}}'::int[] + '{3}'::int[], intarray_push_array('{1}', '{}')
select '{1,null}'::int[] + 1
select '{1}'::int[] + '{null}'::int[]
select '{1,2,1}'::int[] - 1, '{1,1}'::int[] - 1, '{}'::int[] - 1, '{{1,2},{1,3}}'::int[] - 1, '[4:6]={1,2,3}'::int[] - 2, intarray_del_elem('{1}', 2)
select '{1,null}'::int[] - 1
select array_dims('{{1,2},{1,3}}'::int[] - 1), array_dims('[4:6]={1,2,3}'::int[] - 2), array_dims(uniq('{{1,1},{2,2}}')), array_dims('{{2,1}}'::int[] | '{7}'::int[])
-- a table
select id, tags, asked from sections order by id
select id, tags @@ asked from sections where tags is not null order by id
select a.id, b.id from sections a join sections b on a.tags @@ b.asked order by a.id, b.id
select a.id, b.id from sections a join sections b on a.tags && b.tags and a.id < b.id order by a.id, b.id
select id from sections where tags @> '{1,2}' order by id
select id from sections where tags <@ '{1,2,3,4,5}' order by id
select id, sort(tags), uniq(sort(tags)), # tags, idx(tags, 2), subarray(tags, 2, 1) from sections order by tags, id
select sort(tags), count(*), min(id), max(id) from sections group by sort(tags) order by sort(tags)
select distinct uniq(sort(tags)) from sections order by 1
select min(sort(tags)), max(sort_desc(tags)) from sections
select a.id, b.id from sections a join sections b on sort(a.tags) = sort(b.tags) and a.id < b.id order by a.id, b.id
select id, tags | 3, tags - 3, tags + 3, tags & '{1,2,3}', tags - '{1,2,3}'::int[] from sections order by id
select count(distinct asked::text), count(asked) from sections
select asked from sections order by asked
select distinct asked from sections
