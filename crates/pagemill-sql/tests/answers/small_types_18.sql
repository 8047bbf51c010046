-- Small types as only PostgreSQL 18 has them.
select crc32(''::bytea), crc32('The quick brown fox jumps over the lazy dog.'::bytea), crc32c(''::bytea), crc32c('The quick brown fox jumps over the lazy dog.'::bytea);
select reverse('\xabcd01'::bytea), reverse(''::bytea), reverse('\x12'::bytea);
select 4660::smallint::bytea, (-1)::int::bytea, 1::bigint::bytea, '\x1234'::bytea::smallint, '\xffffffff'::bytea::int, '\x0102030405'::bytea::bigint, ''::bytea::int;
select '\x123456'::bytea::smallint;
select '\x1234567890'::bytea::int;
select '\x123456789012345678'::bytea::bigint;
select uuid_extract_version('11111111-1111-5111-8111-111111111111'), uuid_extract_version('11111111-1111-1111-1111-111111111111'), uuid_extract_version(gen_random_uuid());
select uuid_extract_timestamp('C232AB00-9414-11EC-B3C8-9F6BDECED846'), uuid_extract_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F'), uuid_extract_timestamp(gen_random_uuid()), uuid_extract_timestamp('11111111-1111-1111-1111-111111111111');
select money '92233720368547758.07' + money '0.01';
select money '-92233720368547758.08' - money '0.01';
select money '92233720368547758.07' * 2;
select money '1' * 1e30::float8;
select money '1' / 1e-30::float8;
select money '1' * 'NaN'::float8;
select money '1.00' * 1e308::float8;
select money '2.00' * 1e308::float8;
select id, crc32(name::bytea), crc32c(name::bytea), id::bytea as b, reverse(id::bytea)::int as r from people where id < 5 order by id;
