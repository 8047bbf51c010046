-- Forms of statements, of all versions: rows without columns, tables of WITH that name themselves, joins, groups.
select;
select where true;
select where false;
select union select;
select union all select;
select intersect select;
select intersect all select;
select except select;
select from generate_series(1,3) except all select;
select from generate_series(1,3) intersect all select from generate_series(1,2);
select from people union select from people;
select from people where id < 4 union all select from people where id < 3;
select from people where false union select from people where false;
select from people except select from people where false;
select from people where false except select from people;
select from people intersect select from people where id = 3;
select count(*) from (select from people where id < 8) s;
select count(*) from (select from people union select from people) s;
select exists (select), exists (select where false), (select count(*) from (select union all select) s);
select * from (select) s;
select id, s.* from people, (select) s where id < 3 order by id;
select (select);
select trim(both from '  a b  '), trim(leading from '  a b  ') || '|', trim(trailing from '  a b  ') || '|', trim(from ' a ');
select trim(leading 'xyz'), trim(both 'xyxzx', 'x'), trim('xax', 'x'), trim(both 'x' from 'xax'), trim(trailing ' a ') || '|';
select trim(both from name), trim(leading from note) from people join orders on orders.id = people.id where people.id < 4 order by people.id;
select trim(both from id) from people;
select id from people where height isnull and id < 30 order by id;
select 1 isnull, null isnull, 1 notnull, (null) notnull, 1 + null isnull;
select id, height notnull as h from people where id < 9 and not (height isnull) order by id;
select id from people where id < 9 and height is distinct from 1 and ok is not distinct from true order by id;
select 1 is distinct from 2 and false, null is not distinct from null or false, not 1 is distinct from 1 and true;
select 1 is distinct from case when true and false then 2 else 3 end and true, 5 is distinct from 2 + 3 or true and false;
select a.id from people a join people b on a.id is not distinct from b.id and b.id < 3 where a.ok is distinct from b.ok or a.id = 1;
select p.id, q.id, o.id from people p left join people q join orders o on o.id = q.id on q.id = p.id + 1 where p.id < 4 order by 1, 2, 3;
select p.id, q.id, o.id from people p inner join people q left join orders o on o.id = q.id + 50000 on q.id = p.id + 1 left join parts on parts.k = p.id where p.id < 4 order by 1, 2, 3;
select p.id, q.id, k from people p left join people q cross join parts on q.id = p.id and k = p.id where p.id < 3 order by 1, 2, 3;
select p.id, r.id from people p join people q join people r using (id) on q.id = p.id where p.id < 3 order by 1;
select p.id, t from people p left join unnest(tags) t on t like 'b%' where id in (1,2,5000) order by 1,2;
select v, g from (values (1, 10), (2, 20)) v(v, w) left join generate_series(v, v + 2) g on g > 3 order by v, g;
select v, g from (values (1), (2), (null)) v(v) left join generate_series(1, v) g on g < 2 order by v, g;
select v, g, o from (values (1), (2), (3)) v(v) left join generate_series(1, v) with ordinality f(g, o) on o = 2 order by v, g;
select a, b, g from (values (1), (2)) v(a), (values (3), (4)) w(b) left join generate_series(b - 2, 2) g on g > 1 and b < 4 order by a, b, g;
select a, b, g from (values (1), (2)) v(a), lateral (values (3), (4)) w(b) left join generate_series(1, b) g on g = b - 1 order by a, b, g;
select v, g from (values (1), (2)) v(v) left join generate_series(v, 3) g on false order by v, g;
select small, ok, count(*) from people where id < 5 group by distinct rollup(small, ok), rollup(small) order by 1, 2, 3;
select small, ok, count(*) from people where id < 4 group by all rollup(small, ok), rollup(small) order by 1, 2, 3;
select a, b, count(*) from (values (1, 2), (1, 3)) v(a, b) group by distinct grouping sets ((a, b), (b, a), (a), ()), grouping sets (()) order by 1, 2, 3;
select ((select 2) union select 2), (((select 3)) union select 3);
select ((select 2) union select 3);
select (row(1, 2.5)).*, (row('a'::text, null::int)).*;
select (r).* from (select row(1, 'x'::text) as r) s;
select (p).* from people p where id = 3;
select id, (s).*, 1 as last from (select id, name from people where id < 3) s order by id;
select (row(row(1, 2), 3)).*;
with recursive x(id) as (select * from y union all select id + 1 from x where id < 5), y(id) as (values (1)) select * from x order by id;
with recursive a as (select * from b), b as (select 1 as x) select * from a;
with recursive a as (select * from b), b as (select * from a) select * from a;
with recursive x(n) as (select 1 intersect select n + 1 from x) select * from x;
with recursive x(n) as (select 1 except all select n + 1 from x) select * from x;
with recursive x(n) as (select n from x) select * from x;
with recursive x(n) as (select n from x union all select 1) select * from x;
with recursive x(n) as (with x1 as (select 1 from x) select 0 union select * from x1) select * from x;
with recursive x(n) as ((with x1 as (select 1 from x) select * from x1) union select 0) select * from x;
with recursive x(n) as (select 0 union select 1 order by (select n from x)) select * from x;
with recursive x(n) as (select 1 union all select n + 1 from x order by 1) select * from x;
with recursive x(n) as (select 1 union all select n + 1 from x limit 10 offset 1) select * from x;
with recursive x(n) as (select 1 union all select n + 1 from x for update) select * from x;
with recursive x(n) as (select id from people where id = 1 union all select x.n + 1 from people p left join x on x.n = p.id where n < 10) select * from x;
with recursive x(n) as (select id from people where id = 1 union all select x.n + 1 from x right join people p on x.n = p.id where n < 10) select * from x;
with recursive x(n) as (select id from people where id = 1 union all select x.n + 1 from x full join people p on x.n = p.id where n < 10) select * from x;
with recursive x(n) as (select 1 union all select n + 1 from x where n in (select * from x)) select * from x;
with recursive x(n) as (select 1 union all select (select * from x) from x where n < 5) select * from x;
with recursive x(n) as (select 1 union all select count(*) from x) select * from x;
with recursive x(i) as (values (1) union all (select i + 1 from x where i < 10 union all select i + 1 from x where i < 5)) select * from x;
with recursive x(i) as (values (1) union all select * from (select i + 1 from x where i < 10 union all select i + 1 from x where i < 5) t) select * from x;
with recursive x(i) as (values (1) union all (select i + 1 from x where i < 10 except select i + 1 from x where i < 5)) select * from x;
with recursive x(i) as (values (1) union all (select i + 1 from x where i < 10 except all select 3)) select * from x;
with recursive x(i) as (values (1) union all (select i + 1 from x where i < 10 intersect select i + 1 from x where i < 5)) select * from x;
with recursive x(i) as (values (1) union all (select i + 1 from x intersect all select 2)) select * from x;
with recursive x(i) as (select i::numeric(3,0) from (values (1), (2)) t(i) union all select (i + 1)::numeric(10,0) from x where i < 10) select * from x;
with recursive x(i) as (select i::numeric(3,0) from (values (1), (2)) t(i) union all select (i + 1)::numeric(3,0) from x where i < 4) select * from x order by i;
with recursive x(i) as (select 'a'::varchar(9) union all select (i || 'b') from x where length(i) < 3) select * from x;
with recursive x(i) as (select 1 union all select i + 1.5 from x where i < 10) select * from x;
with recursive x(i) as (select 'a'::text union all select (i || 'b')::varchar(5) from x where length(i) < 3) select i, pg_typeof(i) from x order by 1;
with recursive t(j) as (with recursive s(i) as (values (1) union all select i + 1 from s where i < 4) select i from s union all select j + 1 from t where j < 5) select * from t order by j;
with recursive w1(c1) as (with w2(c2) as (with recursive w6(c6) as (with w6(c6) as (with w8(c8) as (select 1) select * from w8) select * from w6) select * from w6) select * from w2) select * from w1;
with recursive o(x) as (select 1 union (with i as (select 2) select * from o union select * from i)) select * from o order by 1;
with recursive o(x) as (select 1 union all (with i as (select * from o where x < 4) select x + 1 from i)) select * from o order by 1;
with recursive o(x) as (with i as (select 2 from o) select * from i union select * from o) select * from o;
with recursive o(x) as ((select 1) union all (select x + 1 from o where x < 6 order by x limit 1)) select * from o order by 1;
with recursive r(n) as (select 1 union all select n + 1 from (select * from r) x where n < 3) select * from r order by n;
with recursive r(n) as (select 1 union all select distinct n + 1 from r, generate_series(1, 3) where n < 4) select * from r order by n;
with recursive r(n) as (select 1 union all select n + 1 from r where n < 4 group by n) select * from r order by n;
with recursive r(n, s) as (select id, name from people where id < 3 union all select * from (select r.n + 1, max(p.name) from r join people p on p.id = r.n + 1 where r.n < 5 group by r.n) g) select * from r order by n, s;
with recursive r(n, m) as (select 1, 1 union all select n + 1, max(n) over () from r where n < 4) select * from r order by n, m;
with recursive r(n) as (select 1 union all select n + 1 from r join people p left join orders o on o.id = p.id on p.id = r.n where n < 4) select * from r order by n;
with a as (select 1), a as (select 2) select * from a;
select * from generate_series(1, 2) as t(a int);
select * from pg_get_keywords() as t(a int8, b int8);
select distinct on (a) a, b, generate_series(1, 3) g from (values (3, 2), (3, 1), (1, 1), (1, 4), (5, 3), (5, 1)) t(a, b) order by a, b desc;
select distinct on (ok) ok, id, unnest(tags) from people where id < 9 order by ok, id desc limit 3;
select interval(0) '1 day 01:23:45.6789', interval(2) '1 day 01:23:45.6789', interval '1.234' second(2), interval '1 2:03' minute to second(1);
select id from people order by id limit 1 + 1 offset 2 * 2 - 1;
select id from people order by id limit 5 / 2.0 offset length('ab');
select count(*) from (select from people limit null::int + 1 offset coalesce(null, 1000)) s;
select id from people order by id limit 1 - 2;
select id from people order by id offset 1 - 2;
select id from people order by id limit 1 / 0;
(select g from generate_series(1, 3) g limit 1) order by g desc;
((select g from generate_series(1, 3) g order by g desc)) limit 1;
(select g from generate_series(1, 3) g limit 2) limit 1;
with a as (select 1 as x) (with b as (select 2 as x) select * from b) order by 1;
(select id from people where id < 4) order by -id;
values (1), (2) order by -column1;
select 1 as x union all select 2 order by x + 1;
select 1 as x union all select 2 order by y;
select (information_schema._pg_expandarray(array['a','b'])).*;
select relname, (aclexplode(relacl)).* from pg_class where relname in ('customers', 'seen', 'orders');

-- Rows of several columns that are left out of a recursion when they were there before.
with recursive r(a, b, c) as (values (5, null, 1), (5, 1, null), (2, 2, 2) union select a, b, c from r where false) select * from r order by 1, 2, 3;
with recursive r(a, b, c) as (values (4, true, true), (4, true, false), (4, false, true), (4, false, false) union select a, b, c from r) select * from r order by 1, 2, 3;
with recursive r(a, b, c, d) as (select nullif(i % 4, 2), nullif(i % 5, 2), nullif(i % 3, 2), nullif(i % 7, 2) from generate_series(0, 1000) i union select a, b, c, d from r) select count(*) from r;
with recursive r(n, a, b) as (values (0, null::int, null::int) union select n + 1, x.a, x.b from r, (values (1, null), (null, 1), (3, 4)) x(a, b) where n < 2) select * from r order by 1, 2, 3;

-- The same twice in the order of DISTINCT ON.
select distinct on (y) x, y from (values (0, ''), (5, 'a'), (6, 'a'), (5, 't1')) q(x, y) order by y, y desc, x desc;
select distinct on (1) count(*), bool_or(x > 1), count(*) from (values (1), (2)) q(x) group by x order by 1, 2, 3;

-- Literals in parts of set operations with parentheses around them.
(select 1) union (select null where false);
(select distinct 1) union (select null) order by 1;
(select null limit 1) union select 1 order by 1;
((select null)) union all ((select 2)) order by 1;
(select 1) except (select null);

-- Recursions that refer to the row around them.
select i, (with recursive r(n) as (select i union all select n + 1 from r where n < i * 2) select sum(n) from r) from generate_series(0, 5) i order by 1;
select i from generate_series(0, 5) i where exists (with recursive r(n) as (select i union select n / 2 from r) select from r where n = 1) order by 1;
with recursive t(i, s) as (select 1, 0::bigint union all select i + 1, (with recursive r(n) as (select i union all select n - 1 from r where n > 1) select sum(n) from r) from t where i < 5) select * from t order by 1;
select id from people p where 3 = (with recursive r(n) as (select p.id union all select n+1 from r where n<3) select max(n) from r) order by 1;

-- EXCEPT and INTERSECT of values that are equal and may look different, by what they are equal in.
select money, free, height, iv, j from people where id < 300 except select money, free, height, iv, j from people where id > 100 order by 1, 2 limit 20;
select count(*) from (select * from people except select * from people where id % 3 = 0) d;
select count(*), min(free), max(height) from (select free, height, tags from people intersect select free, height, tags from people where ok) d;
select n from (values (1.50), (1.50), (2.0), (null), ('NaN')) v(n) except all select n from (values (1.50), ('NaN'), (null)) w(n) order by 1;
select n, a from (values (1.5, array[1.0]), (1.5, array[1.0]), (null, null)) v(n, a) intersect all select n, a from (values (1.5, array[1.0]), (1.5, array[1.0]), (1.5, array[1.0]), (null, null)) w(n, a);
select n from (values (1.0), (3)) v(n) except select f::numeric from (values (1::float8)) w(f) union select 7 order by 1;
select n, i, mn from spans where id < 200 intersect select n, i, mn from spans where id > 100 or id % 2 = 0 order by 1, 2, 3 limit 10;
select c || '', code from (select code c, code from people where id < 20) s except select code, code from people where id < 5 order by 1;

-- COLLATE behind a name with a point in it, and behind one that is that of a type.
select t.a from (values ('a'), ('B')) t(a) where t.a collate "C" < 'b' order by t.a collate "C";
select p.name from people p where p.name collate "C" between 'name 1' and 'name 12' and p.id < 50 order by p.name collate "C" desc;
select path from (values ('b'), ('A')) t(path) order by path collate "C";

-- Queries in what aggregates take, in their conditions and in keys of groups; of an ordered query the first row.
select count(*) filter (where exists (select 1 from orders o where o.person = p.id and o.amount > 100)), count(*) from people p;
select sum(case when exists (select from orders o where o.person = p.id limit 1) then 1 else 0 end) from people p where p.id < 90;
select ok, sum((select count(*) from orders o where o.person = p.id)), max((select max(amount) from orders o where o.person = p.id)) from people p group by ok order by ok;
select count(distinct (select min(o.id) from orders o where o.person = p.id)) from people p;
select string_agg(coalesce((select o.note from orders o where o.person = p.id order by o.id desc limit 1), '-'), ',' order by p.id) from people p where p.id < 40;
select x, count(*) from (select exists (select 1 from orders o where o.person = p.id) as x from people p) s group by x order by x;
select bool_or(x), bool_and(x) from (select not exists (select 1 from orders o where o.person = p.id) as x from people p) s;
select x, count(*) from (select p.ok is true as x from people p) s group by x order by x;
select x, y, min(id) from (select id, p.ok is not false as x, p.born is null as y from people p) s group by x, y order by x, y;
select p.id, (select o.id from orders o where o.person = p.id order by o.at desc nulls last, o.id limit 1) from people p order by p.id limit 60;
select p.id, (select o.amount from orders o where o.person = p.id and o.amount > 20 order by o.amount, o.id limit 1) from people p order by p.id limit 60;
select p.id from people p where (select o.id from orders o where o.person = p.id order by o.id limit 1) % 3 = 0 order by p.id;
select p.id, (select o.id from orders o where o.person = p.id order by o.id limit 1 offset 1) from people p order by p.id limit 30;
select p.id, (select o.id from orders o where o.person = p.id and o.id < p.id * 2 order by o.id desc limit 1) from people p order by p.id limit 30;
select count(*) from people p where exists (select 1 from orders o where o.person = p.id limit 3);
select count(*) from people p where not exists (select 1 from orders o where o.person = p.id order by o.id limit 1);
select count(*) from people p where exists (select 1 from orders o where o.person = p.id limit 0);

-- What a query holds against the row around is computed of its own rows.
select p.id, (select min(o.id) from orders o where o.person + 1 = p.id), exists (select 1 from orders o where lower(o.note) = lower(p.name)) from people p order by p.id limit 40;
select count(*) filter (where exists (select 1 from orders o where o.person / 2 = p.id - 3)), sum((select count(*) from orders o where o.person % 10 = p.id % 10 and o.amount > 50)) from people p;
select p.id, (select o.id from orders o where o.person - 1 = p.id and o.amount is not null order by o.amount desc, o.id limit 1) from people p order by p.id limit 40;
select p.id, (select count(*) from orders o where o.id > 5 and 100 / (o.id - 5) = p.id) from people p order by p.id limit 30;
select p.id, exists (select 1 from orders o where abs(o.person) = p.id and o.id > p.id) from people p order by p.id limit 30;

-- What no row around asks for raises no error.
select p.id, (select count(*) from orders o where 100 / (o.id - 5) = p.id) from people p where p.id < 0;
select count(*) filter (where exists (select 1 from orders o where p.id < 0 and 10 / (o.id - 5) = p.id)) from people p;
select p.id, (select max(100 / (o.id - 5)) from orders o where o.person = p.id) from people p where p.id in (select o.person from orders o where o.id in (6, 7, 8)) and p.id not in (select o.person from orders o where o.id = 5 and o.person is not null) order by p.id;
