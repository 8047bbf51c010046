select * from kinds where id in (1, 2, 999, 1001) order by id
select id, numbers, bigs, words, prices, square, times, moods from lists order by id
select both_of, pairs, span, spans, spot, path from lists order by id
select array_agg(day order by id), array_agg(u order by id), array_agg(doc order by id), array_agg(ok order by id), array_agg(name order by id), array_agg(g order by id), array_agg(raw order by id) from kinds where id < 4
select count(*), sum(id), avg(wide), max(name), bool_and(ok), array_agg(id order by id) from kinds where id < 10
select 1 as one, null as nothing, '' as empty, 'x'::name as name, 7::oid as oid, 'kinds'::regclass as class, 1.0 as n, 2147483648 as big
select 'NaN'::float8, 'Infinity'::float8, '-Infinity'::float4, 'NaN'::numeric, -0.0::float8, 1e300::float8, 1e-7::float8
select '0001-01-01'::date, '9999-12-31 23:59:59.999999'::timestamp, '24:00'::time, '-178000000 years'::interval
select 'infinity'::timestamp
select '4713-01-01 BC'::date
select 12345678901234567890123456789012345678901234567890.123456789, 0.000000000000000000000000000001
select '\x'::bytea, '\x00ff5c27'::bytea
select '10.1.2.0/24'::cidr, '::1/64'::inet, array['10.0.0.1/8'::inet], array_agg(bits order by id) from kinds where id in (3, 1001)
select m, count(*) from kinds group by m order by m nulls first
select id from kinds where false
select nothing from kinds
select * from nowhere
selec 1
select 1 / 0
select 'x'::int
select 300::int2 * 300::int2
select '2024-02-30'::date
select '99999999-01-01'::date
select '1 day 99999999999999999 months'::interval
select '2024-01-01 00:00+99'::timestamptz
select no_such_function(1)
show server_encoding
show standard_conforming_strings
select current_user, session_user, current_schema, current_database()
