select id, email from users where email = 'user10@EXAMPLE.com'
select id from users where email <> 'user10@EXAMPLE.com' order by id limit 3
select count(*) from users where email like 'USER1%'
select count(*) from users where email not like 'uSER1%'
select count(*) from users where email ilike 'USER1%'
select count(*) from users where email ~ '^user2'
select count(*) from users where email !~ '^user2'
select count(*) from users where email ~* '^user2'
select count(*) from users where email !~~ 'USER_@%'
select count(*) from users where email ~~* 'USER_@%'
select email from users order by email limit 5
select email from users order by email desc nulls last, id limit 5
select nick, count(*) from users group by nick order by nick
select id, nick from users order by nick, id limit 8
select count(distinct email), min(email), max(email), count(distinct nick) from users
select max(nick), min(nick) from users where id < 20
select distinct lower(nick) from users order by 1
select count(*) from (select distinct nick from users) x
select lower(email), upper(email), length(email), email || 'x', email::text from users where id = 3
select email || note, note || email, pg_typeof(email || note), pg_typeof(email || email) from users where id = 4
select count(*) from users a join users b on a.email = b.note::citext
select count(*) from users a join users b on a.email = b.note
select count(*) from users a join users b using (email)
select a.id, b.id from users a join users b on a.email > b.email and a.nick = b.nick where a.id < 6 and b.id < 6 order by 1, 2
select id from users where email in ('USER1@EXAMPLE.com', 'b', 'user2@example.com') order by id
select id from users where email not in ('USER1@EXAMPLE.com', 'b') order by id limit 2
select id from users where email = any (array['USER7@EXAMPLE.com', 'x']::citext[])
select id from users where email = any ('{USER7@EXAMPLE.com,x}')
select id from users where email between 'USER5' and 'user6' order by id
select id from users where email > 'USER5' and email <= 'user6' order by id
select email = 'USER1@example.COM'::text, email = 'USER1@example.COM', email = 'USER1@example.COM'::varchar from users where id = 1
select 'a'::citext = 'A'::text, 'a'::citext = 'A'::citext, 'a'::citext < 'B', 'B'::citext > 'a', 'b'::citext >= 'B', 'b'::citext <= 'A'
select 'a'::citext <> 'A', 'a'::citext = 'A'::varchar, 'a'::citext = 'A '::char(2)
select 'Ünï'::citext = 'üNÏ'::citext, email from users where email = 'ÜNÏCODE'
select nick from users where nick = 'STRASSE' or nick = 'STRAßE'
select regexp_replace(email, 'USER', 'x') from users where id = 1
select regexp_match(email, 'USER(.)'), regexp_match(email, 'USER(.)', 'c') from users where id = 2
select regexp_split_to_array(email, 'ER') from users where id = 2
select strpos(email, 'EXAMPLE'), position('example' in email), replace(email, 'USER', 'q'), split_part(email, '@EXAMPLE', 1), translate(email, 'U', 'v') from users where id = 2
select substr(email, 2, 3), left(email, 4), right(email, 3), reverse(email), md5(email), trim(email), lpad(email, 25, '*') from users where id = 2
select concat(email, 1), format('%s|%I|%L', email, email, email), quote_literal(email), ascii(email), initcap(email) from users where id = 2
select string_agg(nick, ',' order by nick, id) from users where id < 9
select array_agg(email order by email) from users where id < 5
select json_agg(email order by id), jsonb_build_object('e', min(email)) from users where id < 4
select to_json(email), row_to_json(users) from users where id = 5
select coalesce(email, 'none'), nullif(nick, 'NICK1'), greatest(email, nick), least(email, nick) from users where id in (1, 100, 101) order by id
select case email when 'USER1@EXAMPLE.COM' then 'yes' else 'no' end from users where id < 3 order by id
select email::varchar(4), email::char(6), email::name, 'x'::name::citext, true::citext, '1.2.3.4'::inet::citext from users where id = 1
select 'A'::citext::"char", 12::citext, '5'::citext::int, 'a'::varchar::citext, 'a '::char(3)::citext || '|'
select 'abc'::citext like 'ABC', 'abc'::citext like 'ABC'::text, 'abc'::citext ilike 'aB%', 'a_c'::citext like 'A\_C' escape '\'
select 'abc'::citext similar to 'AB%', 'abc'::citext ~ 'B'::text
select max(x), min(x) from (values ('a'::citext), ('B'), ('A'), ('b')) t(x)
select x from (values ('a'::citext), ('B'), ('c'), ('D')) t(x) order by x
select x, count(*) from (values ('a'::citext), ('A'), ('b'), ('B'), (null)) t(x) group by x order by count(*) desc, lower(x)
select count(distinct x) from (values ('a'::citext), ('A'), ('b'), (null)) t(x)
select count(*) from (select 'a'::citext x intersect select 'A') u
select count(*) from (select 'a'::citext x except select 'A') u
select rank() over (order by nick), id from users where id < 8 order by 2
select first_value(lower(nick)) over (partition by nick order by id), id from users where id < 8 order by 2
select id, mails, mails[1], 'A' = any (mails), cardinality(mails) from lists order by id
select array_to_string(mails, '|'), unnest(mails) from lists order by 1, 2
select owner, owner = 'a', owner::text = 'a', at = 'x' from lists order by id
select * from shouted order by id limit 2
select id, email from users where lower(email) = 'user9@example.com'
select exists (select from users where email = 'USER9@example.com'), (select count(*) from users u where u.email = users.email) from users where id = 3
select id from users where (email, nick) = ('USER1@EXAMPLE.COM', 'NICK1')
select id from users where (email, id) in (('USER1@EXAMPLE.COM', 1), ('x', 2))
select ('a'::citext, 1) = ('A'::citext, 1), ('a'::citext, 1) < ('B'::citext, 0)
select email collate "C" < 'user3' from users where id in (1, 4) order by id
select email from users order by email collate "C" limit 2
select 'a'::citext ~<~ 'B'::citext, 'b'::citext ~>=~ 'A'::citext, 'a'::citext ~<=~ 'A', 'a'::citext ~>~ 'A'
select percentile_disc(0.5) within group (order by nick) from users where id < 10
select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a where attrelid = 'users'::regclass and attnum > 0 order by attnum
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'users'::regclass order by 1
select pg_get_viewdef('shouted'::regclass)
select citext(true), citext('x'::char), citext('10.0.0.1'::inet)
select email is distinct from 'USER1@EXAMPLE.COM' from users where id in (1, 100) order by id
select to_tsvector('simple', email) from users where id = 1
select count(*) from users where email is null
select hashtext(lower(email)) = hashtext('user1@example.com') from users where id = 1
prepare by_mail(citext) as select id from users where email = $1
execute by_mail('USER12@example.com')
prepare by_unknown as select id from users where email = $1
execute by_unknown('USER13@example.com')
copy (select email from users where id < 3 order by id) to stdout
