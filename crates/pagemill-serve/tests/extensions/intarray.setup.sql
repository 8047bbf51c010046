create extension intarray;
create table sections (id int primary key, tags int[], asked query_int);
insert into sections values
    (1, '{1,2,3}', '1&2'),
    (2, '{3,2,1}', '!1'),
    (3, '{}', '1|(2&!3)'),
    (4, null, null),
    (5, '{5,5,5}', '5'),
    (6, '{{1,2},{2,1}}', '!(1|2)'),
    (7, '[0:2]={7,8,9}', '7&(8|9)'),
    (8, '{2147483647,-2147483648,0}', '-2147483648'),
    (9, '{2,3,1}', '10|11|12|1'),
    (10, '{4}', '!!4');
