-- The tables that the statements beside this file are asked of.
create type mood as enum ('sad','ok','happy');
create table people(id int primary key, name text, born date, seen timestamptz, height float8, money numeric(10,2), free numeric, m mood, code char(6), ok boolean, tags text[], j jsonb, u uuid, small int2, big int8, iv interval);
insert into people select i, 'name '||i, date '1990-01-01'+i, timestamptz '2020-01-01'+i*interval '1 hour', case when i%7=0 then null when i%11=0 then 'NaN' else sqrt(i)-3 end, i*1.25, i*i/7.0, (array['happy','sad','ok'])[i%3+1]::mood, 'c'||i%10, i%2=0, array['a','b'||i], jsonb_build_object('i',i), md5(i::text)::uuid, i%100, i::int8*10000000000, i*interval '1 day 2 hours' from generate_series(1,1000) i;
insert into people(id, born, seen, free) values (5000,'infinity','-infinity','NaN'),(5001,'-infinity','infinity','Infinity');
create table orders(id bigserial primary key, person int references people, amount numeric(12,2), note varchar(20), at timestamp, state text collate "C");
insert into orders(person,amount,note,at,state) select 1+i%900, (i%1000)/3.0, case when i%5=0 then null else 'note '||i%50 end, timestamp '2023-01-01'+i*interval '1 minute', (array['paid','open','void'])[i%3+1] from generate_series(1,50000) i;
create table parts(k int, v text) partition by range(k);
create table parts_1 partition of parts for values from (0) to (100);
create table parts_2 partition of parts for values from (100) to (200);
insert into parts select i, 'p'||i from generate_series(0,199) i;
create table arr(id int, a int[], t text[], n numeric[], d date[], f float8[], m int[][], v varchar(5)[], b bool[], md mood[]);
insert into arr values (1,'{1,2,3}','{a,b,NULL}','{1.10,2}','{2020-01-01,infinity}','{1,NaN,-0}','{{1,2},{3,4}}','{abc,de}','{t,f}','{sad,happy}'),(2,'{}','{}','{}','{}','{}','{}','{}','{}','{}'),(3,null,null,null,null,null,null,null,null,null),(4,'[2:4]={7,8,9}','{"x y","","q\""}','{NULL}','{NULL}','{0}','{{{1},{2}}}','{NULL,x}','{NULL}','{ok}'),(5,'{1,2}','{b,A,c}','{1.1,2.0}','{2020-01-01}','{-0}','{{1,2}}','{z}','{t}','{NULL}');
analyze;
