-- Values of the types that drivers make something of their own of, NULLs, and some that they cannot hold.
create type mood as enum ('sad', 'ok');
create type pair as (a int, b text);
create table kinds(id int primary key, small int2, big int8, price numeric(8,2), wide numeric, f float8, g float4, ok bool, name varchar(20), c char(4), raw bytea, day date, clock time, ts timestamp, at timestamptz, span interval, u uuid, doc jsonb, plain json, m mood, address inet, bits bit varying);
insert into kinds select i, i, i * 10000000000, i / 3.0, i * 1e20 / 7, i / 7.0, i / 7.0, i % 2 = 0, E'n\u00e4me\t' || i, i, decode(md5(i::text), 'hex'), date '1999-12-30' + i, '00:00'::time + i * interval '1.000001 second', '2024-02-28 23:59:59.999999'::timestamp + i * interval '1 hour', '2024-01-01 00:00+00'::timestamptz + i * interval '1.5 hour', i * interval '2 days 3.5 seconds', md5(i::text)::uuid, jsonb_build_object('a', i, 'b', array[null, '"', 'x']), '{"k" : [1.50, null]}', 'ok', ('10.0.0.' || i % 200)::inet, i::bit(12)::bit varying from generate_series(1, 1000) i;
insert into kinds(id) values (1001);
create table lists(id int, numbers int[], bigs int8[], words text[], prices numeric[], square int[], times timestamp[], moods mood[], both_of pair, pairs pair[], span int4range, spans int4multirange, spot point, path tsvector);
insert into lists values
  (1, '{1,2,NULL}', '{}', '{"a b","c\"d","NULL",NULL,""}', '{1.50,NaN,-0.001}', '{{1,2},{3,4}}', '{2024-01-01 00:00:00,NULL}', '{ok,sad}', '(1,"x y")', '{"(1,a)","(2,)"}', '[1,5)', '{[1,3),[7,9)}', '(1.5,-2)', 'a:1 b:2'),
  (2, null, null, null, null, null, null, null, null, null, null, null, null, null),
  (3, '[2:3]={5,6}', '{9223372036854775807}', '{}', '{}', '{}', '{}', '{}', '(,)', '{}', 'empty', '{}', '(0,0)', '');
checkpoint;
