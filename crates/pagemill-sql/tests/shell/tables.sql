create table animals (n int primary key, name text not null);
insert into animals values (1, 'ant'), (2, 'bee'), (3, E'cat\nof two lines');
create table many as select n from generate_series(1, 3000) n;
