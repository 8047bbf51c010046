-- What of this only newer servers have.
select * from pg_split_walfile_name('000000010000000100000002');
select * from pg_split_walfile_name('ffffffff00000000000000af');
select s.* from (values ('000000010000000000000001'), ('0000000A000000FF000000FE')) v(n), pg_split_walfile_name(n) s order by 1;
select * from pg_split_walfile_name('invalid');
select * from pg_split_walfile_name('00000001000000010000000200');
select * from pg_split_walfile_name(null);
select pg_basetype('small_int'::regtype), pg_basetype('int4'::regtype), pg_basetype(1), pg_basetype(null), pg_basetype('doc_positive');
select pg_column_toast_chunk_id(ev_action) is null, count(*) from pg_rewrite group by 1 order by 1;
select pg_column_toast_chunk_id(ev_action), pg_column_size(ev_action) from pg_rewrite order by 1, 2;
select pg_column_toast_chunk_id(id) from people where id = 1;
select unicode_version();
select hashbool(true), hashboolextended(false, 3), hashdate('2020-01-01'), hashdateextended('infinity', 3), hashbytea('\x0102'), hashbyteaextended('\x', 3), hashxid('7'), hashxidextended('7', 3), hashxid8('70000000000'), hashxid8extended('70000000000', 3), hashcid('7'), hashcidextended('7', 3), timestamptz_hash('2020-01-01 00:00+00'), timestamptz_hash_extended('-infinity', 3);
select interval_hash('infinity'), interval_hash_extended('-infinity', 4);
select normalize(U&'\0897a', NFD) is null, U&'\0897' is nfc normalized, normalize(U&'\+016D67\+016D67', nfc) = U&'\+016D68';
