create extension hstore;

create table pairs (id int primary key, h hstore, keys text[], note text);

insert into pairs values
    (1, 'a=>1, b=>2', '{a,c}', 'two'),
    (2, 'b=>2, a=>1', '{}', 'two'),
    (3, 'a=>1, b=>NULL', '{b,NULL}', 'a NULL'),
    (4, '', '{a}', 'none'),
    (5, NULL, '{a}', 'NULL'),
    (6, 'aa=>t, c=>f, ""=>x', '{"",aa}', 'empty key'),
    (7, 'c=>"1.50", d=>"-0e+1", e=>"01"', '{d}', 'numbers'),
    (8, '"q\"uote"=>"back\\slash", "sp ace"=>"a,b=>c"', '{"q\"uote"}', 'quotes'),
    (9, 'é=>ü, €=>"𝄞"', '{é}', 'letters beyond ASCII'),
    (10, 'ab=>""', NULL, 'empty value'),
    (11, 'a=>1, b=>2, c=>3, d=>4, e=>5, f=>6, g=>7', '{g,f,a}', 'seven'),
    (12, '"null"=>"null", NULL=>NULL', '{null,"null"}', 'null words');

insert into pairs
    select 100 + i, hstore(array['id', 'parity', 'k' || i % 7], array[i::text, (i % 2)::text, case when i % 3 > 0 then 'v' || i % 5 end]),
        array['k' || i % 3], 'many'
    from generate_series(1, 60) i;

insert into pairs
    select 200, hstore(array_agg('key ' || i), array_agg(repeat('value ' || i, 40))), array['key 7'], 'long'
    from generate_series(1, 200) i;

create table tags (tag hstore, weight int);

insert into tags values ('a=>1, b=>2', 1), ('a=>1, b=>NULL', 2), ('', 3), (NULL, 4), ('id=>7, parity=>1, k0=>v2', 5), ('b=>2, a=>1', 6);
