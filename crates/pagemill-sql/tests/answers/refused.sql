-- Statements that the server answers and that are refused here, since their answer is not known to be the server's.
select id, (select o.note from orders o where o.id=p.id) from people p where p.id<10 order by id;
select cbrt(27);
select money::money from people where id=1;
select version();
select 1 as x union all select 2 order by x + 1;
select lag(id) over (order by id) from orders where id<4;
select name from people order by name collate "en-x-icu";
with recursive r(n) as (select 1 union all select n+1 from r where n<5) select n from r;
select * from people where (id, name) in (select 1, 'name 1');
select ~1 + 1;
select |/ 4 - 1;
select 'a' ~~ 'b' || 'c';
select - - 2 ^ 2;
select 1 isnull;
