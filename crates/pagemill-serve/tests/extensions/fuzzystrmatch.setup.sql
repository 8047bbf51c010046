create extension fuzzystrmatch;
create table names (id int primary key, name text);
insert into names values
    (1, 'Smith'), (2, 'Schmidt'), (3, 'Smyth'), (4, 'Jones'), (5, 'Johannes'), (6, ''), (7, null),
    (8, 'Müller'), (9, 'Mueller'), (10, 'Thompson'), (11, 'Thomson'), (12, '日本語'), (13, 'Фёдоров'), (14, 'O''Brien');
