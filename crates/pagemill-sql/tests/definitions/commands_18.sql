create function r.returned(n int) returns setof int begin atomic update r.t set x = n returning old.x; delete from r.t returning with (old as before, new as "After") before.x + coalesce("After".x, 0); insert into r.t (id) values (1) returning with (new as n) n.x; end;
create rule returned as on insert to r.v4 where false do instead nothing;
create view r.v5 as select id, x from r.t; create rule upd5 as on update to r.v5 do instead update r.t set x = new.x where id = old.id returning old.id, new.x;
