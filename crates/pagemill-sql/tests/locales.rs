//! The order and the case of texts under a locale of the C library, held against a server with the same library; and letters of the
//! provider `builtin`.
//!
//! The locales are made for the test, and both programs find them by `LOCPATH`, which the C library reads as it starts: so the
//! test runs itself once more with that in its environment.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const LOCALES: [&str; 2] = ["en_US", "de_DE"];
const ROWS: usize = 20_000;

const TABLES: &str = "\
create collation german (locale = 'de_DE.UTF-8');
create collation stale (locale = 'de_DE.UTF-8');
create collation unversioned (locale = 'de_DE.UTF-8');
create collation absent (locale = 'de_DE.UTF-8');
update pg_collation set collversion = '2.17' where collname = 'stale';
update pg_collation set collversion = null where collname = 'unversioned';
update pg_collation set collcollate = 'xx_XX.UTF-8' where collname = 'absent';
create table texts(id int, t text, g text collate german, s text collate stale, u text collate unversioned,
  a text collate absent, c char(8));
create table given(id int, t text);
create domain word as text;
create domain short_word as word;
create domain plain_word as text collate \"C\";
create table words(id int, w word, s short_word, p plain_word, ws word[], ps text[] collate \"C\", n name);
insert into words values (1, 'a', 'a', 'a', '{a}', '{a}', 'a'), (2, 'B', 'B', 'B', '{B}', '{B}', 'B'),
  (3, 'É', 'É', 'É', '{É,a}', '{É}', 'É'), (4, 'b', 'b', 'b', '{b}', '{b}', 'b'), (5, null, null, null, null, null, null);
create table parts(w word, id int) partition by range (w);
create table parts1 partition of parts for values from (minvalue) to ('c');
create table parts2 partition of parts for values from ('c') to (maxvalue);
insert into parts select w, id from words where id < 5;
";

const ANSWERED: [&str; 33] = [
    "select id from texts order by t, id",
    "select id from texts order by t desc, id limit 100",
    "select id from texts order by g, id",
    "select id from texts order by c, id",
    "select id from texts order by t collate \"C\", id",
    "select id from texts order by s collate \"default\", id",
    "select min(t), max(t), min(g), max(g), min(c), max(c) from texts",
    "select count(*) from texts where t < 'm' or t >= 'Z9'",
    "select count(*) from texts a join texts b on a.t < b.t where a.id % 100 = 0 and b.id % 100 = 1",
    "select 'a' < 'B', 'Z' > 'a', 'coop' < 'co-op', '9-b' < '9--b', greatest('é', 'f', 'E'), least('x y', 'x-y')",
    "select t from (select distinct t from texts) d order by t",
    "select id, rank() over (order by t) from texts order by id",
    "select md5(upper(t)), md5(lower(t)), md5(initcap(g)) from texts order by id",
    "select id from texts where t ilike '%É%' or t ilike '%straße%' order by id",
    "select distinct on (t) t, id from texts order by t, id",
    "select distinct on (g, c) id, c, g from texts order by c desc, g, id",
    "select distinct on (length(t), t) t from texts order by length(t)",
    "select id, t ~* 'É|straße', t ~* '[é-ü]', g ~ '^\\w+$', t ~ '\\d', t ~ '\\s' from texts order by id",
    "select id, t ~ '[[:upper:]]', t ~ '[[:lower:]]', t ~ '[[:alpha:]]', t ~ '[[:punct:]]', t ~ '[[:print:]]', t ~ '[[:graph:]]' from texts order by id",
    "select id, regexp_replace(t, '[[:alpha:]]+?', '<\\&>', 'g'), regexp_replace(t, '\\W', '', 'g') from texts order by id",
    "select id, regexp_match(t, '([[:alpha:]]+)(\\W)?|(.)') from texts order by id",
    "select id, t ~ '\\mé', t ~ 'ß\\M', regexp_count(t, '\\y') from texts where t !~ '[^[:alpha:] _.,-]' order by id",
    "select t ~* t2 from (values ('ǅ', 'ǆ'), ('ǆ', 'ǅ'), ('ǅ', 'ǅ'), ('ǅ', '[ǅ]'), ('ſ', 's'), ('s', 'ſ'), ('K', 'k')) v(t, t2)",
    "select id, to_tsvector('simple', t), to_tsvector('german', t) from texts where t !~ '[^[:alpha:][:digit:] _.,-]' order by id",
    "select to_tsvector('english', 'Crème brûlée, naïve cafés and Übermut—straße 10,5 £20 日本語テキスト'), to_tsvector('french', 'Les élèves étaient très fatigués après l''été')",
    "select plainto_tsquery('english', 'Crème brûlée'), websearch_to_tsquery('german', '\"große Häuser\" or Städte -Füße orété')",
    "select ts_parse('default', 'Élan-vital http://exämple.com/päth?q=é foo@bär.de 10,5 ÉÉ123 12é — «quote» x_é é_x /usr/löcal <b>é</b>')",
    "select ts_headline('french', 'Les élèves étaient très fatigués', to_tsquery('french', 'élève')), ts_lexize('german_stem', 'GRÖSSE')",
    "select jsonb_path_query('[\"été\",\"ÉTÉ\",\"x y\"]', '$[*] ? (@ like_regex \"^é\" flag \"i\")')",
    "select id from texts order by jsonb_build_object('t', t, coalesce(g, ''), array[c]), id",
    "select id, t similar to '%[[:upper:]]_%', t similar to '[[:alpha:] ß]+' from texts order by id",
    "select to_char(1234.5, 'L9,999.99'), to_char(-5, 'FML99'), to_char(7, '9L'), to_number('$1,234.50', 'L9,999.99')",
    "select regexp_split_to_table('añb, cñd', '\\s*,\\s*'), regexp_substr('naïve café', '[[:alpha:]]+', 7)",
];

/// Which collation a value has by where it comes from: domains and arrays have that of their column, names that of C, which they keep as
/// texts, and what is made of several values has theirs.
const DERIVED: [&str; 27] = [
    "select w, id from words order by w",
    "select min(w), max(s), min(p), max(ws), min(ps), max(n) from words",
    "select id from words where w < 'b' and s < 'c' order by id",
    "select s, rank() over (order by s) from words order by id",
    "select ws, ws[1] < 'b', ws < array['b']::word[] from words order by ws",
    "select ps < array['b'], ps[1] < 'b' from words order by ps, id",
    "select u from words, unnest(ps) u order by u",
    "select p || '' < 'b', p ilike 'é', upper(p), least(p, 'b') from words order by id",
    "select tableoid::regclass, w from parts where w >= 'b' order by w, 1",
    "select count(*) from parts where w < 'c'",
    "select max(t collate \"C\") < 'b', lower(max(t collate \"C\")), string_agg(t collate \"C\", '') < 'a' from (values ('a'), ('É')) v(t)",
    "select t from (values ('a'), ('B')) v(t) group by t order by max(t collate \"C\")",
    "select percentile_disc(0.5) within group (order by t collate \"C\") < 'a', mode() within group (order by t collate \"C\") < 'a' from (values ('B')) v(t)",
    "select max(t collate \"C\") over () < 'b' from (values ('a'), ('B')) v(t)",
    "select (array_agg(t collate \"C\"))[1] < 'a', (regexp_match(t collate \"C\", '.+'))[1] < 'a', array[t collate \"C\"] < array['a'] from (values ('B')) v(t) group by t",
    "select 'B' > any(array['a' collate \"C\"]), array_to_string(array['B' collate \"C\"], '') < 'a', lower('É'::char(3) collate \"C\")",
    "select n::text q from words order by q, id",
    "select n || '', quote_ident(n), lower(n), n ~* 'é', n::text::name < 'a'::text::name from words order by 1, id",
    "select 'B'::name::text < 'a', 'B'::text::name < 'a'::text::name, current_user < 'a', current_database() < 'a'",
    "select relname::text q from pg_class where relname ~ '^(words|parts|texts|Pg)' union select 'C'::text order by 1",
    "select t from (values ('a'), ('B'), ('É')) v(t) full join (select 'b' collate \"C\" t) q using (t) order by t",
    "select words, n from words order by n collate \"C\", id",
    "select count(*) from texts where g < 'z' collate \"C\" or 'É' collate \"default\" > g",
    "select id from words order by n collate \"default\", id",
    "select g ilike 'É' collate \"C\", g ~* 'é' collate \"C\" from texts order by id",
    "select n < 'b' collate \"default\", n > 'a'::text collate \"default\", least(n, 'b' collate \"default\"), greatest(p collate \"default\", w) from words order by id",
    "select g || 'x' collate \"C\" < 'a', coalesce(p, g collate \"default\") < 'a' from texts join words using (id) order by id",
];

/// Indexes in the order of a locale.
const KEYED: &str = "\
create table keyed(k text primary key, g text collate german, s text collate stale, c char(8), id int);
insert into keyed select t || id, nullif(t, ''), t, left(t, 8), id from given;
create index keyed_g on keyed(g desc nulls last, id);
create index keyed_c on keyed(c);
create index keyed_s on keyed(s);
create table laid as select k from keyed order by k;
create index laid_k on laid using brin(k) with (pages_per_range = 2);
delete from keyed where id % 5 = 0;
update keyed set id = -id where id % 7 = 0;
";

/// Statements that find rows by them, and what EXPLAIN says of how.
const BY_INDEX: [(&str, &str); 16] = [
    ("select id from keyed where k = 'Straße77'", "index keyed_pkey, "),
    (
        "select k, id from keyed where k in ('a', 'É1', 'co-op6', 'ß12') order by k",
        "index keyed_pkey, ",
    ),
    ("select k from keyed where k > 'Ä9' and k < 'äa' order by k", "index keyed_pkey, "),
    (
        "select id, k from keyed where k between 'co-op' and 'coop4' order by id",
        "index keyed_pkey, ",
    ),
    ("select id from keyed where 'Z' <= k and 'Z0' > k order by id", "index keyed_pkey, "),
    ("select k, id from keyed order by k limit 5", "index keyed_pkey in its order, "),
    (
        "select k, id from keyed where k >= 'é' order by k desc limit 5",
        "index keyed_pkey in its order backward, ",
    ),
    ("select min(k), max(k) from keyed", "index keyed_pkey in its order, "),
    (
        "select min(k), max(k) from keyed where k < 'ñ' and id > 0",
        "index keyed_pkey in its order, ",
    ),
    (
        "select g, id from keyed order by g desc nulls last, id limit 7",
        "index keyed_g in its order, ",
    ),
    (
        "select g, id from keyed where g < 'ä' order by g, id desc limit 7",
        "index keyed_g in its order backward, ",
    ),
    ("select id from keyed where c = 'ß  ' order by id", "index keyed_c, "),
    ("select id, c from keyed where c > 'Ñ' and c <= 'ñ0' order by id", "index keyed_c, "),
    ("select count(*) from laid where k >= 'b' and k < 'e'", "index laid_k, which leaves "),
    // Of these an index has another order, or one that is not known here.
    (
        "select count(*) from keyed where k > 'Z' collate \"C\" and g < 'z' collate \"C\"",
        "whole table, ",
    ),
    (
        "select count(*) from keyed where s = 'Straße'",
        "keyed_s (in a collation that may sort otherwise here)",
    ),
];

const REFUSED: [(&str, &str); 4] = [
    ("select id from texts order by s", "of version 2.17 of the C library, and here is version"),
    ("select id from texts order by u", "no version of the C library is recorded, and here is"),
    ("select id from texts order by a", "the locale xx_XX.UTF-8 is not installed here"),
    ("select id from texts order by t collate \"en-x-icu\"", "its provider is ICU"),
];

/// With the order taken for that of the library here, which it is, or for that of bytes.
const ASSUMED: [(&str, &str, &str, &str); 4] = [
    ("here", "select id from texts order by s, id", "", "(of version 2.17 of the C library"),
    (
        "here",
        "select max(u), count(*) from texts where u > 'm'",
        "",
        "(no version of the C library is recorded",
    ),
    (
        "bytes",
        "select id from texts order by u, id",
        "u collate \"C\"",
        "are ordered by their bytes",
    ),
    (
        "bytes",
        "select id from keyed where s > 'Z' order by id",
        "s collate \"C\"",
        "are ordered by their bytes",
    ),
];

/// Texts that differ in accents, case, signs and blanks, of scripts that locales know and do not know.
fn texts() -> String {
    const PARTS: [&str; 44] = [
        "a", "A", "ä", "Ä", "e", "é", "ê", "E", "É", "-", " ", "_", "ß", "s", "S", "c", "h", "ch",
        "0", "12", "9", ".", ",", "あ", "ア", "漢", "字", "가", "😀", "🏍", "…", "½", "ñ", "Ñ", "ø",
        "z", "Z", "/", "\u{301}", "\u{308}", "\u{378}", "Straße", "STRASSE", "co-op",
    ];
    let mut state = 88_172_645_463_325_252_u64;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % end
    };
    let mut rows = String::new();
    for id in 0..ROWS {
        let text: String = (0..below(6)).map(|_| PARTS[below(PARTS.len())]).collect();
        let _ = writeln!(rows, "{id}\t{text}");
    }
    rows
}

fn make_locales(to: &Path) -> Result<bool> {
    fs::set_permissions(to, Permissions::from_mode(0o755))?;
    for locale in LOCALES {
        let mut localedef = Command::new("localedef");
        localedef.args(["--no-archive", "-i", locale, "-f", "UTF-8"]);
        let Ok(made) = localedef.arg(to.join(format!("{locale}.UTF-8"))).output() else {
            return Ok(false);
        };
        if !made.status.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn texts_are_ordered_as_the_server_orders_them() -> Result<()> {
    let locales = tempfile::tempdir()?;
    if !make_locales(locales.path())? {
        eprintln!("SKIPPED: no localedef, or no sources of locales");
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe()?);
    again.args(["--exact", "with_locales", "--ignored", "--nocapture"]);
    let output = again.env("LOCPATH", locales.path()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
#[ignore = "run by the other one, with LOCPATH"]
fn with_locales() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "en_US.UTF-8".to_owned(), ..ClusterOptions::default() };
    let mut server = TestCluster::create(&install, &options)?;
    let scratch = tempfile::tempdir()?;
    fill(&server, scratch.path())?;
    server.stop()?;
    let stopped = server.copy_to(&scratch.path().join("copy"))?;
    server.start()?;
    for statement in ANSWERED.into_iter().chain(DERIVED) {
        same_rows(&server, &stopped, statement)?;
    }
    for (statement, access) in BY_INDEX {
        same_rows(&server, &stopped, statement)?;
        let output = ours(&stopped, &format!("explain analyze {statement}"))?;
        let plan = String::from_utf8_lossy(&output.stdout);
        ensure!(plan.contains(access), "{statement}: not by {access}\n{plan}");
    }
    for (order, statement, by, notice) in ASSUMED {
        let flags = ["--text-order", order];
        let output = with_flags(&stopped, &flags, statement)?;
        let same = match by.split_once(' ') {
            Some((column, _)) => statement.replace(&format!(" {column}"), &format!(" {by}")),
            None => statement.to_owned(),
        };
        is_as_server(&server, &same, &output)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains(notice), "{statement}: {said}");
    }
    for (statement, why) in REFUSED {
        let output = ours(&stopped, statement)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && output.stdout.is_empty(), "{statement}: answered");
        ensure!(
            said.contains(why) && said.contains("is not supported here"),
            "{statement}: {said}"
        );
    }
    Ok(())
}

/// Of the provider `builtin`, which 17 and 18 have with Unicode of different versions.
const OF_UNICODE: [&str; 4] = [
    "select count(*) filter (where t ~ '[[:alpha:]]'), count(*) filter (where t ~ '\\w'), count(*) filter (where t ~ '[[:upper:]]'), count(*) filter (where t ~ '[[:lower:]]'), count(*) filter (where t ~ '[[:punct:]]'), count(*) filter (where t ~ '[[:print:]]'), count(*) filter (where t ~ '\\s') from characters",
    "select md5(string_agg(upper(t), '' order by i)), md5(string_agg(lower(t), '' order by i)) from characters",
    "select md5(string_agg(initcap(t), '' order by i)) from characters where t !~ '[ა-ჿǄ-ǌǱ-ǳ]'",
    "select t, upper(t), lower(t), initcap(t), t ilike '%É%', t ~* 'é', regexp_match(t, '(\\w+) (\\w+)'), t ~ '\\mé' from (values ('Élan vital'), ('STRASSE straße'), ('Ελλάδα ΣΑΣ'), ('naïve café')) v(t) order by t",
];

#[test]
fn letters_of_the_provider_builtin_are_those_of_unicode() -> Result<()> {
    for install in [17, 18].into_iter().filter_map(PgInstall::find) {
        let flags = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"].map(str::to_owned);
        let options = ClusterOptions {
            locale: "C".to_owned(),
            initdb_flags: flags.into(),
            ..ClusterOptions::default()
        };
        let mut server = TestCluster::create(&install, &options)?;
        server.psql(
            "postgres",
            "create table characters as select i, chr(i) t from generate_series(1, 70000) i
                where i not between x'D800'::int and x'DFFF'::int",
        )?;
        server.stop()?;
        let scratch = tempfile::tempdir()?;
        let stopped = server.copy_to(&scratch.path().join("copy"))?;
        server.start()?;
        for statement in OF_UNICODE {
            same_rows(&server, &stopped, statement)?;
        }
    }
    Ok(())
}

fn fill(server: &TestCluster, scratch: &Path) -> Result<()> {
    fs::set_permissions(scratch, Permissions::from_mode(0o755))?;
    server.psql("postgres", TABLES)?;
    let file = scratch.join("texts.sql");
    fs::write(&file, format!("copy given from stdin;\n{}\\.\n", texts()))?;
    server.psql_file("postgres", &file, &[])?;
    server.psql("postgres", "insert into texts select id, t, t, t, t, t, left(t, 8) from given")?;
    server.psql("postgres", "insert into texts values (-1)")?;
    server.psql("postgres", KEYED)?;
    server.psql("postgres", "vacuum analyze keyed, laid")?;
    Ok(())
}

fn same_rows(server: &TestCluster, stopped: &TestCluster, statement: &str) -> Result<()> {
    is_as_server(server, statement, &ours(stopped, statement)?)
}

fn is_as_server(server: &TestCluster, statement: &str, output: &Output) -> Result<()> {
    let copy = format!("copy ({statement}) to stdout csv");
    let wanted = server.copy_out("postgres", &copy)?;
    let rows = output.stdout.split_inclusive(|byte| *byte == b'\n').skip(1);
    // An empty text has quotes in both, and NULL has none.
    ensure!(
        output.status.success() && rows.eq(wanted.split_inclusive(|byte| *byte == b'\n')),
        "{statement}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn ours(stopped: &TestCluster, statement: &str) -> Result<Output> {
    with_flags(stopped, &[], statement)
}

fn with_flags(stopped: &TestCluster, flags: &[&str], statement: &str) -> Result<Output> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(stopped.data_dir()).args(flags);
    program.args(["-d", "postgres", "--format", "csv", statement]);
    Ok(program.output()?)
}
