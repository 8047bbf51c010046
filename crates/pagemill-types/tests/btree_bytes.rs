//! B-tree indexes that are built here from the rows of a stopped server, against those the server
//! built: byte for byte, but for LSN, checksum and free space. Ours are then put in their place,
//! and `amcheck` of that server looks for every row in them.

// Shared with the tests of heap pages, which know nothing of types.
#[path = "../../pagemill-format/tests/server_tables/mod.rs"]
mod server_tables;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use pagemill_format::btree::BtreeMeta;
use pagemill_format::btree_builder::{BtreeBuilder, BtreeOptions};
use pagemill_format::checksum::is_new;
use pagemill_format::index_tuple_builder::IndexForm;
use pagemill_format::page::Page;
use pagemill_format::page_builder::set_checksum;
use pagemill_format::tuple_data_builder::ColumnLayout;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error, Oid};
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};
use pagemill_types::index_key_order::{KeyColumn, KeyOrder};
use pagemill_types::order::{EnumOrder, TextCollation, ValueOrder};

use server_tables::{ServerTable, blocks, column, tuples};

/// Columns of every type whose order is known, with many duplicates, nulls and odd values.
const TABLE: &str = "
CREATE EXTENSION amcheck;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
CREATE TABLE v (
  id int, i2 int2, i8 int8, o oid, f4 float4, f8 float8, n numeric, b bool, ch \"char\", na name,
  t text, vc varchar(50), bp char(20), by bytea, u uuid, d date, ti time, tz timetz, ts timestamp,
  tsz timestamptz, iv interval, ine inet, ci cidr, ma macaddr, ma8 macaddr8, bi bit(13), vb varbit,
  en mood, ov oidvector, lsn pg_lsn, x8 xid8, mo money, rc regclass, ta tid, long text, rand text);
INSERT INTO v SELECT
  i, i % 100 - 50, (i::bigint - 3000) * 5000000000, (i * 7919) % 5000 + CASE WHEN i % 7 = 0 THEN 3000000000 ELSE 0 END,
  CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN '-Infinity' ELSE (i * 37 % 1000 - 500)::text END::float4,
  CASE WHEN i % 11 > 0 THEN (i * 37 % 1000 - 500) / 8.0 END,
  CASE i % 13 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '1.0' WHEN 4 THEN '1.00'
    WHEN 5 THEN '0' WHEN 6 THEN '0.000' WHEN 7 THEN (i * 1e40)::text WHEN 8 THEN (-i / 1e30::numeric)::text
    WHEN 9 THEN '123456789.' || i ELSE (i * 977 % 4000 - 2000)::text END::numeric,
  i % 3 = 0, chr(i % 127 + 1)::\"char\", ('name' || i % 97)::name,
  CASE WHEN i % 10 > 0 THEN md5((i % 700)::text) END, substr('aßb€c𐍈d', i % 7 + 1, i % 5), left(md5((i % 50)::text), i % 20),
  substring(decode(md5((i % 900)::text), 'hex') FROM 1 FOR i % 17),
  md5((i * 3 % 2000)::text)::uuid, date '2000-01-01' + (i * 31 % 5000 - 2500), time '00:00' + i * interval '7 s',
  (time '00:00' + (i % 24) * interval '1 h')::text::time::text::timetz + interval '0' ,
  timestamp '2000-01-01' + (i * 991 % 3000 - 1500) * interval '1 h', timestamptz '2000-01-01' - i * interval '1 min',
  CASE i % 4 WHEN 0 THEN make_interval(days => i % 60) WHEN 1 THEN make_interval(months => i % 5 - 2)
    WHEN 2 THEN make_interval(hours => 24 * (i % 60)) ELSE make_interval(months => -178000000, days => i) END,
  CASE i % 3 WHEN 0 THEN ('10.' || i % 5 || '.0.' || i % 256 || '/' || i % 33)::inet
    WHEN 1 THEN ('fe80::' || to_hex(i % 999) || '/' || i % 129)::inet ELSE ('10.1.0.' || i % 256)::inet END,
  network(('192.168.' || i % 256 || '.0/' || 16 + i % 9)::inet),
  ('08:00:2b:01:' || lpad(to_hex(i % 256), 2, '0') || ':' || lpad(to_hex(i % 7), 2, '0'))::macaddr,
  ('08:00:2b:01:02:03:' || lpad(to_hex(i % 256), 2, '0') || ':' || lpad(to_hex(i % 7), 2, '0'))::macaddr8,
  (i % 500)::bit(13), (i % 500)::bit(24)::varbit(24), (enum_range(null::mood))[1 + i % 4],
  CASE i % 3 WHEN 0 THEN '1 2' WHEN 1 THEN '1 ' || i % 9 ELSE (i % 9) || ' 3 4' END::oidvector,
  (to_hex(i % 3) || '/' || to_hex(i * 55))::pg_lsn, (i % 999)::text::xid8, (i * 17 % 500 - 250)::money,
  (ARRAY['pg_class', 'pg_type', 'pg_proc'])[1 + i % 3]::regclass, ('(' || i % 70000 || ',' || i % 100 || ')')::tid,
  CASE WHEN i % 3 = 0 THEN repeat('long' || i % 30, 250 + i % 100) END, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 20 + i % (CASE WHEN i % 8 = 0 THEN 60 ELSE 5 END)) j)
FROM generate_series(1, 3000) i ORDER BY i * 7919 % 6007;
UPDATE v SET bi = NULL, vb = substring(vb FROM 1 FOR id % 24) WHERE id % 5 = 0;
UPDATE v SET tz = tz AT TIME ZONE interval '3 hours' WHERE id % 4 = 0;
VACUUM FULL v;
";

/// Columns, and what goes before and behind them, of indexes on that table.
const INDEXES: &[(&str, &str, &str)] = &[
    ("", "(i2)", ""),
    ("", "(i2 DESC)", ""),
    ("", "(f8 NULLS FIRST)", ""),
    ("", "(f8 DESC NULLS LAST)", ""),
    ("", "(f8 DESC)", ""),
    ("UNIQUE", "(id)", ""),
    ("UNIQUE", "(i8, t)", "WITH (fillfactor = 50)"),
    ("", "(t, i2)", ""),
    ("", "(b, en, i2 DESC, t)", ""),
    ("", "(en, vb, bi)", "WITH (fillfactor = 100)"),
    ("", "(i2) INCLUDE (t, f8)", ""),
    ("", "(t) INCLUDE (long)", ""),
    ("", "(i2)", "WITH (deduplicate_items = off)"),
    ("", "(rand)", ""),
    ("", "(long, id)", ""),
    ("", "(long DESC, rand)", ""),
    ("", "(b, long COLLATE \"POSIX\")", ""),
    ("", "(bp, vc, na)", ""),
    ("", "(ine DESC, ci NULLS FIRST, tz)", ""),
];

/// Columns that get an index of their own.
const SINGLE: &str =
    "i8 o f4 n b ch na t vc bp by u d ti tz ts tsz iv ine ci ma ma8 bi vb en ov lsn x8 mo rc ta";

struct ServerIndex {
    name: String,
    file: PathBuf,
    columns: Vec<ColumnLayout>,
    /// Columns of the table, from 0.
    keys: Vec<usize>,
    order: KeyOrder,
    options: BtreeOptions,
    has_character: bool,
}

fn all_indexes(cluster: &TestCluster) -> Result<Vec<ServerIndex>> {
    let single = SINGLE.split(' ').map(|column| ("", format!("({column})"), ""));
    let listed =
        INDEXES.iter().map(|(unique, columns, with)| (*unique, columns.to_string(), *with));
    let create = |(number, (unique, columns, with))| {
        format!("CREATE {unique} INDEX v{number} ON v {columns} {with};")
    };
    let script: String = listed.chain(single).enumerate().map(create).collect();
    cluster.psql("postgres", &script)?;
    let ask = |sql: &str| -> Result<Vec<String>> {
        Ok(cluster.psql("postgres", sql)?.lines().map(str::to_owned).collect())
    };
    let answers = Answers {
        columns: ask(
            "SELECT attrelid::regclass, attlen, attalign, attstorage, attcompression, attisdropped \
             FROM pg_attribute, pg_index WHERE attrelid = indexrelid AND indrelid = 'v'::regclass \
             ORDER BY attrelid, attnum",
        )?,
        keys: ask("SELECT indexrelid::regclass, opcintype, indoption[n - 1] \
             FROM pg_index, generate_series(1, indnkeyatts) n, pg_opclass c \
             WHERE indrelid = 'v'::regclass AND c.oid = indclass[n - 1] ORDER BY indexrelid, n")?,
        labels: ask("SELECT oid FROM pg_enum ORDER BY enumsortorder")?,
    };
    let classes = ask(
        "SELECT indexrelid::regclass, pg_relation_filepath(indexrelid), indisunique, indkey::text, \
         coalesce(substring(reloptions::text from 'fillfactor=(\\d+)')::int, 90), \
         coalesce(reloptions::text ~ 'deduplicate_items=off', false) \
         FROM pg_index, pg_class c WHERE indrelid = 'v'::regclass AND c.oid = indexrelid",
    )?;
    classes.iter().map(|line| describe(cluster, line, &answers)).collect()
}

/// What the server says of all indexes, each line with the index's name first.
struct Answers {
    columns: Vec<String>,
    keys: Vec<String>,
    labels: Vec<String>,
}

fn of_index<'a>(lines: &'a [String], name: &'a str) -> impl Iterator<Item = &'a str> {
    let line = move |line: &'a String| line.split_once('|').filter(|(first, _)| *first == name);
    lines.iter().filter_map(line).map(|(_, rest)| rest)
}

fn describe(cluster: &TestCluster, class: &str, answers: &Answers) -> Result<ServerIndex> {
    let fields: Vec<&str> = class.split('|').collect();
    let name = fields[0];
    let columns = of_index(&answers.columns, name).map(column).collect::<Result<Vec<_>>>()?;
    let labels: Vec<Oid> =
        answers.labels.iter().map(|oid| Ok(Oid(oid.parse()?))).collect::<Result<_>>()?;
    let mut order = Vec::new();
    for (line, column) in of_index(&answers.keys, name).zip(&columns) {
        let (kind, option) = line.split_once('|').context("two fields")?;
        let (kind, option): (u32, u32) = (kind.parse()?, option.parse()?);
        let scalar = ValueOrder::of_type(Oid(kind), &TextCollation::C);
        let enums = || ValueOrder::Enum(Arc::new(EnumOrder::new(labels.clone())));
        order.push(KeyColumn {
            layout: column.layout,
            order: scalar.unwrap_or_else(enums),
            descending: option & 1 != 0,
            nulls_first: option & 2 != 0,
        });
    }
    let keys = fields[3].split(' ').map(|key| Ok(key.parse::<usize>()? - 1));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    Ok(ServerIndex {
        name: name.to_owned(),
        file: cluster.data_dir().join(fields[1]),
        options: BtreeOptions {
            name: name.to_owned(),
            fillfactor: fields[4].parse()?,
            has_included_columns: keys.len() > order.len(),
            is_unique: fields[2] == "t",
            deduplicate_items: fields[5] == "f",
            is_of_system_in_14: false,
        },
        columns,
        keys,
        has_character: order.iter().any(|key| matches!(key.order, ValueOrder::PaddedText(_))),
        order: KeyOrder::new(order),
    })
}

/// Every row's values with its place.
type Rows = Vec<(pagemill_format::Tid, Vec<Option<Vec<u8>>>)>;

fn rows(table: &ServerTable) -> Result<Rows> {
    let toasted = table.toasted()?;
    let mut rows = Vec::new();
    for page in &table.pages()? {
        for tuple in tuples(page)? {
            rows.push((tuple.ctid(), table.row(&tuple, &toasted)?.payloads));
        }
    }
    Ok(rows)
}

fn built(index: &ServerIndex, rows: &Rows) -> Result<Vec<BlockBytes>> {
    let mut form = IndexForm::new(&index.name, &index.columns)?;
    let mut entries = Vec::new();
    for (tid, payloads) in rows {
        let values: Vec<Option<&[u8]>> =
            index.keys.iter().map(|n| payloads[*n].as_deref()).collect();
        let mut entry = Vec::new();
        form.form(values.as_slice(), *tid, &mut entry)?;
        entries.push((index.order.abbreviate(&entry), entry));
    }
    entries
        .sort_by(|(a, left), (b, right)| a.cmp(b).then_with(|| index.order.compare(left, right)));
    ensure!(entries.is_sorted_by(|(_, a), (_, b)| index.order.compare(a, b).is_lt()), "order");
    let mut builder = BtreeBuilder::new(&index.order, index.options.clone());
    let mut pages = Vec::new();
    let mut sink = |block: BlockNumber, page: &mut BlockBytes| -> Result<(), Error> {
        let number = block.0 as usize;
        pages.resize(pages.len().max(number + 1), [0; BLOCK_SIZE]);
        assert!(is_new(&pages[number]), "a block comes once");
        pages[number] = *page;
        Ok(())
    };
    for (_, entry) in &entries {
        builder.add(entry, &mut sink)?;
    }
    let summary = builder.finish(&mut sink)?;
    ensure!(pages.len() == summary.blocks as usize);
    Ok(pages)
}

fn compare(theirs: &[BlockBytes], ours: &[BlockBytes]) -> Result<()> {
    for (number, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        let header = Page::new(theirs).header();
        let free = usize::from(header.lower)..usize::from(header.upper);
        let differs = (10..BLOCK_SIZE).find(|at| !free.contains(at) && theirs[*at] != ours[*at]);
        if let Some(at) = differs {
            let around = at.saturating_sub(8)..(at + 16).min(BLOCK_SIZE);
            anyhow::bail!(
                "page {number}, byte {at}: {:02x?} where the server has {:02x?}",
                &ours[around.clone()],
                &theirs[around]
            );
        }
    }
    ensure!(theirs.len() == ours.len(), "{} pages, the server has {}", ours.len(), theirs.len());
    Ok(())
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    for statement in TABLE.split(";\n") {
        cluster.psql("postgres", statement)?;
    }
    let indexes = all_indexes(&cluster)?;
    ensure!(indexes.len() == INDEXES.len() + SINGLE.split(' ').count());
    let table = ServerTable::describe(&cluster, &["v"])?.remove(0);
    cluster.stop()?;
    let rows = rows(&table)?;
    ensure!(rows.len() == 3000);
    let mut highest = 0;
    for index in &indexes {
        let mut pages = built(index, &rows).context(index.name.clone())?;
        let theirs = blocks(&index.file)?;
        // Servers differ, by their minor version, in whether they deduplicate character(n).
        let [is_theirs, is_ours] = [&theirs, &pages].map(|pages| BtreeMeta::parse(&pages[0]));
        if !(is_theirs?.all_equal_image && !is_ours?.all_equal_image && index.has_character) {
            compare(&theirs, &pages).context(index.name.clone())?;
        }
        for (page, block) in pages.iter_mut().zip(0..) {
            set_checksum(page, BlockNumber(block));
        }
        highest = highest.max(BtreeMeta::parse(&pages[0])?.level);
        fs::write(&index.file, pages.as_flattened())?;
    }
    ensure!(highest >= 3, "levels: {highest}");
    cluster.start()?;
    let sql = "SELECT bt_index_parent_check(indexrelid, true, true) FROM pg_index WHERE indrelid = 'v'::regclass";
    cluster.psql("postgres", sql)?;
    cluster.stop()
}

#[test]
fn indexes_built_from_a_servers_rows_are_the_servers() {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}
