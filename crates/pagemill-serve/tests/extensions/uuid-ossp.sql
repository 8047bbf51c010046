select uuid_nil(), uuid_ns_dns(), uuid_ns_url(), uuid_ns_oid(), uuid_ns_x500()
select uuid_generate_v3(uuid_ns_dns(), 'www.widgets.com'), uuid_generate_v5(uuid_ns_dns(), 'www.widgets.com')
select uuid_generate_v3(uuid_nil(), ''), uuid_generate_v5(uuid_nil(), ''), uuid_generate_v3(uuid_ns_url(), 'grün 日本'), uuid_generate_v5(uuid_ns_url(), 'grün 日本')
select n, uuid_generate_v3(uuid_ns_oid(), repeat('x', n)), uuid_generate_v5(uuid_ns_oid(), repeat('x', n)) from unnest(array[0, 1, 38, 39, 40, 47, 48, 49, 103, 104, 112, 1000]) n
select uuid_generate_v3(null, 'a'), uuid_generate_v5(uuid_nil(), null)
select uuid_generate_v3('not one', 'a')
select id, uuid_generate_v3(namespace, host), uuid_generate_v5(namespace, host) from hosts order by id
select id from hosts order by uuid_generate_v5(namespace, host), id
select namespace, count(*) from hosts where namespace > uuid_nil() group by namespace order by namespace
select a.id, b.id from hosts a join hosts b on uuid_generate_v5(uuid_ns_dns(), a.host) = uuid_generate_v5(uuid_ns_dns(), b.host) order by 1, 2
