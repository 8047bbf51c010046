create view r.json1 as select json_object('a' : id, 'b' value y null on null) a, json_object('k' : x absent on null with unique keys returning jsonb) b, json_array(id, x, y) c, json_array(id, y null on null returning text) d, json_array(y format json) e, json_object(returning bytea format json encoding utf8) f, json_array() g from r.t;
create view r.json2 as select json_objectagg(y : x) a, json_objectagg(y : x absent on null with unique keys returning jsonb) filter (where x > 1) b, json_arrayagg(y order by x desc) c, json_arrayagg(y null on null returning text) d from r.t;
create view r.json3 as select json_arrayagg(x) over (partition by y) a, json_objectagg(y : x) over w b from r.t window w as (order by id);
create view r.json4 as select y is json a, y is not json b, y is json object with unique keys c, y is json array d, (y is json scalar) is true e, y is json value f from r.t where y is json or x > 1;
create view r.json5 as select json_array(select x from r.t order by id) a;
create table r.checked(j text check (j is json object with unique keys), k jsonb);
create index is_json on r.checked ((j is json array), k) where k is json;
