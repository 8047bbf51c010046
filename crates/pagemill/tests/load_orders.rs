//! `pagemill load` into tables with B-trees over arrays, ranges, multiranges, rows, jsonb, tsvector and tsquery, with
//! values that are hard to put in order; `amcheck` and the server's own sort are the judges.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::install::PgInstall;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, TestCluster, each_of};

const DATABASE: &str = "postgres";

const TYPES: &str = "
    CREATE EXTENSION amcheck;
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    ALTER TYPE mood ADD VALUE 'better' BEFORE 'ok';
    CREATE TYPE pair AS (a int, gone text, b text, c numeric);
    ALTER TYPE pair DROP ATTRIBUTE gone;
    CREATE TYPE deep AS (p pair, q int4range, r text[]);
    CREATE TYPE word_range AS RANGE (subtype = text, collation = \"C\");
    CREATE TYPE float_range AS RANGE (subtype = float8);
    CREATE DOMAIN numbers AS int[];
    CREATE FUNCTION n(most int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT (random() * most)::int';
    CREATE FUNCTION maybe(most int) RETURNS int LANGUAGE sql VOLATILE AS
        'SELECT CASE WHEN random() < 0.8 THEN n(most) END';
    SELECT setseed(0.5);
    ";

/// Types, and queries of values of them.
const CASES: &[(&str, &str)] = &[
    (
        "int[]",
        "SELECT (SELECT array_agg(maybe(3)) FROM generate_series(1, n(4) + 0 * i)) FROM generate_series(1, 700) i
         UNION ALL SELECT unnest(ARRAY['{}', '[0:1]={1,2}', '{1,2}', '[2:3]={1,2}', '{NULL}', '{-1}']::text[])::int[]
         UNION ALL SELECT '{{1,2},{3,4}}' UNION ALL SELECT '{{1,2,3,4}}' UNION ALL SELECT '{1,2,3,4}'
         UNION ALL SELECT '[5:6][1:2]={{1,2},{3,4}}' UNION ALL SELECT '{{{1}},{{2}}}' UNION ALL SELECT '{{{1},{2}}}'",
    ),
    (
        "numeric[]",
        "SELECT ARRAY[(n(2) / 2.0)::numeric(9,3), maybe(2)::numeric] || CASE n(9) WHEN 0 THEN 'NaN'::numeric
         WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN 1.10 ELSE 1.1 END FROM generate_series(1, 500)",
    ),
    (
        "text[]",
        "SELECT ARRAY[repeat(chr(97 + n(2)), n(3)), CASE n(3) WHEN 0 THEN 'é' WHEN 1 THEN 'Z' WHEN 2 THEN '' END]
         FROM generate_series(1, 500)",
    ),
    ("char(4)[]", "SELECT ARRAY[repeat('x', n(3)), repeat('y', n(2))]::char(4)[] FROM generate_series(1, 200)"),
    ("float8[]", "SELECT ARRAY[(CASE n(4) WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE n(3)::text END)::float8] FROM generate_series(1, 200)"),
    ("mood[]", "SELECT enum_range(NULL::mood, (enum_range(NULL::mood))[1 + n(2)]) FROM generate_series(1, 100)"),
    ("numbers", "SELECT ARRAY[maybe(5), maybe(5)]::numbers FROM generate_series(1, 300)"),
    ("interval[]", "SELECT ARRAY[make_interval(months => n(2), days => n(60), hours => n(48))] FROM generate_series(1, 300)"),
    ("int2vector", "SELECT (n(3) || ' ' || n(3))::int2vector FROM generate_series(1, 100)"),
    (
        "int4range",
        "SELECT int4range(maybe(3), 3 + maybe(3), (ARRAY['[)', '(]', '()', '[]'])[1 + n(3)]) FROM generate_series(1, 500)
         UNION ALL SELECT 'empty'",
    ),
    (
        "numrange",
        "SELECT numrange(CASE WHEN n(5) > 0 THEN n(3)::numeric(5,1) END, CASE WHEN n(5) > 0 THEN 3 + n(3)::numeric END,
         (ARRAY['[)', '(]', '()', '[]'])[1 + n(3)]) FROM generate_series(1, 800) UNION ALL SELECT 'empty'",
    ),
    (
        "float_range",
        "SELECT float_range((CASE n(4) WHEN 0 THEN '-0' WHEN 1 THEN '0' WHEN 2 THEN '-Infinity' END)::float8,
         (CASE n(4) WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '1' END)::float8, (ARRAY['[)', '(]', '[]'])[1 + n(2)])
         FROM generate_series(1, 300)",
    ),
    ("word_range", "SELECT word_range(repeat('a', n(3)), 'b' || repeat('b', n(200)), '[]') FROM generate_series(1, 300)"),
    ("daterange[]", "SELECT ARRAY[daterange(date '2000-01-01' + maybe(3), date '2000-02-01' + maybe(3))] FROM generate_series(1, 300)"),
    (
        "nummultirange",
        "SELECT (SELECT coalesce(range_agg(numrange(n(40), 41 + n(1), (ARRAY['[)', '(]', '()', '[]'])[1 + n(3)]) *
           numrange(n(30) + 0 * i, 30 + n(20), '[]')), '{}') - range_agg(numrange(n(40), 60, '(]') * numrange(j * 7, j * 7 + n(3), '[)'))
           FROM generate_series(1, 1 + n(7)) j) FROM generate_series(1, 500) i
         UNION ALL SELECT '{}' UNION ALL SELECT '{(,)}' UNION ALL SELECT '{(,1),(1,)}'",
    ),
    (
        "int8multirange",
        "SELECT range_agg(int8range(10 * j, 10 * j + n(8))) FROM generate_series(1, 400) i, generate_series(1, 9) j
         WHERE n(1) = 0 GROUP BY i",
    ),
    (
        "pair",
        "SELECT (maybe(2), repeat('x', maybe(2)), maybe(2) / 2.0)::pair FROM generate_series(1, 500)",
    ),
    (
        "deep",
        "SELECT ((maybe(1), 'a', 1.0 * maybe(1))::pair, int4range(maybe(2), NULL), ARRAY['x', repeat('y', maybe(1))])::deep
         FROM generate_series(1, 500)",
    ),
    ("pair[]", "SELECT ARRAY[(maybe(2), 'q', NULL)::pair, NULL, (1, NULL, maybe(2))::pair] FROM generate_series(1, 300)"),
    (
        "jsonb",
        "SELECT jsonb_build_object(repeat('k', n(2)), n(3), 'l', jsonb_build_array(maybe(1), n(1) = 0, 'x' || n(2), 1.0, 1.00))
         FROM generate_series(1, 500)
         UNION ALL SELECT unnest(ARRAY['[]', '{}', 'null', '\"\"', '0', '-1', '1.0', '1', 'true', 'false', '[null]', '[[]]',
           '[{}]', '[1]', '[1, 2]', '[\"a\"]', '{\"a\": []}', '{\"a\": null}', '{\"b\": 1, \"a\": 2}', '\"é\"', '\"Z\"', '\"z\"',
           '{\"aa\": 1}', '[1, [2, [3]]]', '[1, [2, {\"a\": 3}]]', '1e300', '-1e300'])::jsonb FROM generate_series(1, 3)",
    ),
    (
        "tsvector",
        "SELECT (CASE WHEN n(1) = 0 THEN to_tsvector('simple', repeat('b', n(2)) || ' a' || n(3)) ELSE
         ('a' || n(2) || ':' || 1 + n(2) || (ARRAY['A', 'B', '', 'D'])[1 + n(3)] || ',' || 4 + n(3) || ' b')::tsvector END)
         FROM generate_series(1, 500) UNION ALL SELECT ''",
    ),
    (
        "tsquery",
        "SELECT ((ARRAY['a', '!a', 'b:*', 'c:AB', '(a|b)', 'a <-> b', '(a <3> b)', '!(a & b)'])[1 + n(7)] ||
         (ARRAY[' & ', ' | ', ' <-> ', ' <2> '])[1 + n(3)] || (ARRAY['x', 'yy', '!z'])[1 + n(2)])::tsquery
         FROM generate_series(1, 600) UNION ALL SELECT ''",
    ),
];

fn load(cluster: &TestCluster, table: &str, file: &Path) -> Result<()> {
    let path = file.to_str().context("a path that is no UTF-8")?;
    let args = ["load", "-d", DATABASE, "-t", table, path];
    let output = Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{table}: {said}");
    Ok(())
}

/// In the order of the index, and as the server sorts: equal keys in the order of the table in both.
fn check_order(cluster: &TestCluster, table: &str, of: &str) -> Result<()> {
    for direction in ["", "DESC"] {
        let text = |order: &str, settings: &str| {
            let query = format!(
                "{settings} SELECT md5(string_agg(v::text || ctid::text, '|')) FROM (SELECT v, ctid FROM {table} ORDER BY v {order}) s"
            );
            cluster.psql(DATABASE, &query)
        };
        let by_index = text(
            direction,
            "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;",
        )?;
        let tids = if direction.is_empty() { "ASC" } else { "DESC" };
        let sorted = text(
            &format!("{direction}, ctid {tids}"),
            "SET enable_indexscan = off; SET enable_indexonlyscan = off;",
        )?;
        ensure!(by_index == sorted, "{of}: another order than the server's");
    }
    Ok(())
}

#[test]
fn indexes_over_nested_values_are_in_the_order_of_the_server() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(DATABASE, TYPES)?;
        let dir = tempfile::tempdir()?;
        for (case, (of, query)) in CASES.iter().enumerate() {
            let script = format!(
                "CREATE TABLE f{case} (v {of}); INSERT INTO f{case} {query}; INSERT INTO f{case} VALUES (NULL);
                 CREATE TABLE t{case} (LIKE f{case}); CREATE INDEX ON t{case} (v);
                 CREATE INDEX ON t{case} (v DESC NULLS LAST, v); INSERT INTO t{case} SELECT * FROM f{case} LIMIT 9"
            );
            cluster.psql(DATABASE, &script).context(*of)?;
            let rows = cluster.copy_out(DATABASE, &format!("COPY f{case} TO STDOUT"))?;
            fs::write(dir.path().join(format!("t{case}")), rows)?;
        }
        cluster.stop()?;
        for (case, (of, _)) in CASES.iter().enumerate() {
            let table = format!("t{case}");
            load(&cluster, &table, &dir.path().join(&table)).context(*of)?;
        }
        cluster.start()?;
        for (case, (of, _)) in CASES.iter().enumerate() {
            let check = format!(
                "SELECT bt_index_parent_check(indexrelid, true) FROM pg_index WHERE indrelid = 't{case}'::regclass"
            );
            cluster.psql(DATABASE, &check).context(*of)?;
            check_order(&cluster, &format!("t{case}"), of)?;
        }
        Ok(())
    });
}
