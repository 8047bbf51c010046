create extension "uuid-ossp";
create table hosts (id int primary key, host text, namespace uuid);
insert into hosts values
    (1, 'www.widgets.com', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'),
    (2, '', '6ba7b811-9dad-11d1-80b4-00c04fd430c8'),
    (3, null, '6ba7b812-9dad-11d1-80b4-00c04fd430c8'),
    (4, 'grün.example', null),
    (5, 'www.widgets.com', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
