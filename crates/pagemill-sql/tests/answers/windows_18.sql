-- Frames that reach behind all numbers, as minor releases before have them otherwise.
select x, sum(x) over (order by x rows between 9223372036854775807 following and 1 following), sum(x) over (order by x rows between 1 following and 9223372036854775807 following) from generate_series(1, 3) x;
select x, sum(x) over (order by x groups between current row and 9223372036854775807 following), sum(x) over (order by x groups between 9223372036854775807 preceding and 1 preceding) from generate_series(1, 3) x;
select sum(x) over (rows between current row and 9223372036854775807 following exclude current row) from generate_series(1, 3) x;
select x, last_value(x) over (order by x rows between current row and 9223372036854775807 following exclude current row), nth_value(x, 2) over (order by x groups between 9223372036854775800 following and unbounded following) from generate_series(1, 3) x;
