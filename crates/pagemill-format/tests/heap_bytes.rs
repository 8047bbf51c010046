//! Heap and TOAST pages that are built here from a server's payloads, against those the server wrote:
//! byte for byte, but for LSN and checksum, whenever the rows came in one `COPY` into a new table.

mod server_tables;

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use pagemill_format::heap_builder::{HeapBuilder, assign_blocks};
use pagemill_format::page::Page;
use pagemill_format::page_builder::set_checksum;
use pagemill_format::toast_builder::{ToastBuilder, ToastChunk, ToastSink, chunk_form};
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::tuple::infomask::{XMAX_INVALID, XMIN_FROZEN};
use pagemill_format::tuple_builder::{TupleForm, TupleStamp};
use pagemill_format::tuple_data_builder::{AttributeStorage, ColumnLayout, Value};
use pagemill_format::varlena::Compression;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, ErrorKind, Oid, TransactionId};
use pagemill_testkit::PgInstall;
use pagemill_testkit::install::REQUIRED_MAJOR;
use pagemill_testkit::prepared::empty_cluster;

use server_tables::{ServerTable, tuples};

/// Name, columns, options, and a query for the rows.
const TABLES: &[(&str, &str, &str, &str)] = &[
    (
        "ints",
        "a int, b int, c bigint, d smallint, e int, f bigint",
        "",
        "SELECT i, i * 2, i * 3::bigint, (i % 100)::int2, -i, i FROM generate_series(1, 3000) i",
    ),
    ("one_bool", "a bool", "", "SELECT i % 3 = 0 FROM generate_series(1, 2000) i"),
    (
        "half_full",
        "a int, b text",
        "WITH (fillfactor = 50)",
        "SELECT i, repeat('x', i % 300) FROM generate_series(1, 500) i",
    ),
    (
        "many_types",
        "a int2, b bool, c int8, d \"char\", e name, f text, g numeric, h timestamptz, i uuid, j bytea, \
         k varchar(200), l char(10), m int[], n jsonb, o inet, p varbit, q interval, r float4, \
         s macaddr, t timetz, u point, v text[], w tsvector, x money, y oidvector",
        "",
        "SELECT i::int2, i % 2 = 0, i * 1000000000::bigint, 'x', 'name ' || i, \
         CASE WHEN i % 3 > 0 THEN repeat('y', i % 200) END, (i * 1.5)::numeric(10, 3), now(), \
         md5(i::text)::uuid, decode(md5(i::text), 'hex'), CASE WHEN i % 5 > 0 THEN repeat('é', i % 90) END, \
         'c' || i, ARRAY[i, i + 1, NULL], jsonb_build_object('a', i, 'b', repeat('z', i % 150)), \
         ('10.0.0.' || i % 256)::inet, (i % 7)::bit(5)::varbit, make_interval(days => i), i / 3.0, \
         '08:00:2b:01:02:03'::macaddr, CASE WHEN i % 2 > 0 THEN '04:05:06+02'::timetz END, point(i, i), \
         ARRAY['a', NULL, repeat('b', i % 130)], to_tsvector('simple', 'a b ' || i), i::money, \
         '1 2 3'::oidvector FROM generate_series(1, 1500) i",
    ),
    (
        "short_and_long",
        "a text, b text, c int, d bytea",
        "",
        "SELECT repeat('a', i), repeat('b', 130 - i), i, NULL FROM generate_series(110, 130) i \
         UNION ALL SELECT '', '', 0, ''",
    ),
    (
        "compressed",
        "a int, b text, c text",
        "",
        "SELECT i, repeat('the quick brown fox ' || i, 60 + i), 'short' FROM generate_series(1, 200) i \
         UNION ALL SELECT i, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 55 + i % 20) j), \
         repeat(md5(i::text), i % 9) FROM generate_series(1, 200) i",
    ),
    (
        "toasted",
        "a int, b text, c bytea, d text",
        "",
        "SELECT i, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 200 + i * 7) j), \
         decode(repeat(md5(i::text), i * 30), 'hex'), repeat('ab' || i, 20 * i) FROM generate_series(1, 60) i",
    ),
    (
        "toasted_many_columns",
        "a text, b text, c text, d text, e text, f text",
        "",
        "SELECT t[1], t[2], t[3], t[4], t[5], t[6] FROM (SELECT array_agg((SELECT string_agg(md5((i * j * k)::text), \
         '') FROM generate_series(1, 3 + (i * k) % 40) j) ORDER BY k) t FROM generate_series(1, 100) i, \
         generate_series(1, 6) k GROUP BY i) x",
    ),
    (
        "small_target",
        "a int, b text, c text, d text",
        "WITH (toast_tuple_target = 128)",
        "SELECT i, repeat(md5(i::text), 40), repeat('x', i * 20), md5(i::text) || repeat('y', i * 3) \
         FROM generate_series(1, 300) i",
    ),
    (
        "no_toast_table",
        "a int, b varchar(400), c numeric(10, 2), d char(100)",
        "",
        "SELECT i, repeat('b', i % 400), i, 'x' FROM generate_series(1, 500) i",
    ),
];

/// Tables whose columns get another storage before they are filled.
const STORAGES: &[(&str, &str)] = &[("external", "EXTERNAL"), ("main", "MAIN")];

fn create_and_fill(
    name: &str,
    columns: &str,
    options: &str,
    query: &str,
    alter: &str,
    copy: &str,
) -> String {
    format!(
        "COPY ({query}) TO '{{file}}'; \
         CREATE TABLE {name} ({columns}) {options}; {alter} COPY {name} FROM '{{file}}' {copy};"
    )
}

fn scripts() -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    for (name, columns, options, query) in TABLES {
        let script = create_and_fill(name, columns, options, query, "", "");
        scripts.push((name.to_string(), script));
        let frozen = format!("{name}_frozen");
        let script = create_and_fill(&frozen, columns, options, query, "", "(FREEZE)");
        scripts.push((frozen, script));
    }
    for (suffix, storage) in STORAGES {
        for table in ["compressed", "toasted", "toasted_many_columns", "small_target"] {
            let (_, columns, options, query) =
                TABLES.iter().find(|(name, ..)| *name == table).unwrap();
            let name = format!("{table}_{suffix}");
            let alter = format!(
                "ALTER TABLE {name} ALTER b SET STORAGE {storage}, ALTER c SET STORAGE {storage};"
            );
            scripts
                .push((name.clone(), create_and_fill(&name, columns, options, query, &alter, "")));
        }
    }
    let alter = "ALTER TABLE plain ALTER b SET STORAGE PLAIN;";
    let query = "SELECT i, repeat('p', i * 10 % 3000), repeat(md5(i::text), i) FROM generate_series(1, 150) i";
    scripts.push((
        "plain".into(),
        create_and_fill("plain", "a int, b text, c text", "", query, alter, ""),
    ));
    let alter = "ALTER TABLE dropped DROP gone, DROP gone_too;";
    let query = "SELECT i, repeat('p', i), i FROM generate_series(1, 300) i";
    let columns = "a int, gone text, b text, gone_too int, c int8";
    scripts.push(("dropped".into(), create_and_fill("dropped", columns, "", query, alter, "")));
    scripts
}

/// Hands out the ids the server gave, and collects the chunks.
struct Chunks<'t> {
    ids: VecDeque<Oid>,
    pages: HeapBuilder<Vec<u8>>,
    form: &'t TupleForm,
    stamp: TupleStamp,
}

impl ToastSink for Chunks<'_> {
    type Error = anyhow::Error;

    fn next_value_id(&mut self) -> Result<Oid> {
        self.ids.pop_front().context("a value was moved that the server kept")
    }

    fn chunk(&mut self, chunk: &ToastChunk<'_>) -> Result<()> {
        self.pages.add(self.form, chunk, self.stamp)?.context("no room")?;
        Ok(())
    }
}

fn buffer(pages: usize) -> Vec<u8> {
    vec![0; pages * BLOCK_SIZE]
}

fn finished(builder: HeapBuilder<Vec<u8>>) -> Vec<BlockBytes> {
    let (buffer, pages) = builder.finish();
    let mut pages = buffer.as_chunks::<BLOCK_SIZE>().0[..pages].to_vec();
    // Into a high place and back, so that both halves of the block numbers are seen to be written.
    assign_blocks(&mut pages, BlockNumber(0x1234_5678));
    assign_blocks(&mut pages, BlockNumber(0));
    pages
}

/// Main and TOAST pages, built from the payloads of the server's.
fn rebuilt(table: &ServerTable) -> Result<[Vec<BlockBytes>; 2]> {
    let (pages, toasted) = (table.pages()?, table.toasted()?);
    let toast_pages = table.toast_pages()?;
    let form = TupleForm::new(&table.columns)?;
    let chunk_form = chunk_form()?;
    let mut toaster = ToastBuilder::new(&table.columns, table.toast_relation, table.tuple_target)?;
    let first = tuples(&pages[0])?[0];
    let frozen = first.infomask() & XMIN_FROZEN == XMIN_FROZEN;
    let make = if frozen { TupleStamp::frozen } else { TupleStamp::inserted };
    let stamp = make(first.xmin(), first.cid());
    ensure!(first.infomask() & XMAX_INVALID != 0);
    let toast_visible = toast_pages.first().is_some_and(|page| Page::new(page).is_all_visible());
    let mut heap = HeapBuilder::new(buffer(2 * pages.len()), table.fillfactor, frozen);
    let mut chunks = Chunks {
        ids: VecDeque::new(),
        pages: HeapBuilder::new(buffer(toast_pages.len()), 100, toast_visible),
        form: &chunk_form,
        stamp,
    };
    for page in &pages {
        for tuple in tuples(page)? {
            let row = table.row(&tuple, &toasted)?;
            let mut ids: Vec<Oid> = row.pointers.iter().map(|pointer| pointer.value_id).collect();
            ids.sort();
            chunks.ids = ids.into();
            let values = row.values();
            let size = form.measure(values.as_slice())?;
            let added = if ToastBuilder::is_due(size) {
                let toasted = toaster.toast(values.as_slice(), &mut chunks)?;
                heap.add(&form, &toasted, stamp)?
            } else {
                heap.add_measured(&form, values.as_slice(), size, stamp)?
            };
            ensure!(chunks.ids.is_empty(), "a value stayed that the server moved");
            added.context("more pages than the server's")?;
        }
    }
    Ok([finished(heap), finished(chunks.pages)])
}

fn compare(theirs: &[BlockBytes], ours: &[BlockBytes]) -> Result<()> {
    for (number, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        let differs = (10..BLOCK_SIZE).find(|&at| theirs[at] != ours[at]);
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
    let file = cluster.root().join("rows.copy").display().to_string();
    let scripts = scripts();
    let transactions = scripts.iter().map(|(_, script)| format!("BEGIN; {script} COMMIT;\n"));
    let script: String = transactions.collect();
    cluster.psql("postgres", &script.replace("{file}", &file))?;
    let names: Vec<&str> = scripts.iter().map(|(name, _)| name.as_str()).collect();
    let tables = ServerTable::describe(&cluster, &names)?;
    cluster.stop()?;
    for (name, table) in names.iter().zip(&tables) {
        let context = || name.to_string();
        let [heap, toast] = rebuilt(table).with_context(context)?;
        compare(&table.pages()?, &heap).with_context(context)?;
        compare(&table.toast_pages()?, &toast).with_context(|| format!("TOAST of {name}"))?;
    }
    Ok(())
}

#[test]
fn pages_built_from_a_servers_values_are_the_servers() {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}

/// LZ4 can be compressed in many ways, so here the server is asked what it reads.
fn check_lz4(install: &PgInstall) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    let create = "CREATE TABLE t (a int, b text COMPRESSION lz4, c bytea COMPRESSION lz4)";
    cluster.psql("postgres", create)?;
    let insert = "INSERT INTO t SELECT i, repeat('the quick brown fox ' || i, 100 + i), \
                  decode(repeat(md5(i::text), i % 200), 'hex') FROM generate_series(1, 500) i";
    cluster.psql("postgres", insert)?;
    let ask = "SELECT sum(pg_column_size(b)) < sum(length(b)) / 10, md5(string_agg(b || c::text, ',' ORDER BY a)) \
               FROM t WHERE pg_column_compression(b) = 'lz4'";
    let before = cluster.psql("postgres", ask)?;
    let table = ServerTable::describe(&cluster, &["t"])?.remove(0);
    let file = cluster.psql("postgres", "SELECT pg_relation_filepath('t')")?;
    cluster.stop()?;
    let [mut heap, _] = rebuilt(&table)?;
    ensure!(heap != table.pages()?, "the pages are ours");
    for (page, block) in heap.iter_mut().zip(0..) {
        set_checksum(page, BlockNumber(block));
    }
    std::fs::write(cluster.data_dir().join(file), heap.as_flattened())?;
    cluster.start()?;
    let after = cluster.psql("postgres", ask)?;
    ensure!(before == after && before.starts_with("t|"), "{before} became {after}");
    cluster.stop()
}

#[test]
fn a_server_reads_what_is_compressed_with_lz4_here() {
    let install = PgInstall::find(REQUIRED_MAJOR).unwrap();
    check_lz4(&install).unwrap();
}

#[test]
fn a_row_that_fits_no_page_is_refused_in_the_servers_words() {
    let columns = [ColumnLayout {
        layout: AttributeLayout { len: -1, align: 4 },
        storage: AttributeStorage::Plain,
        compression: Compression::Pglz,
        dropped: false,
    }];
    let form = TupleForm::new(&columns).unwrap();
    let mut heap = HeapBuilder::new(buffer(1), 100, false);
    let stamp = TupleStamp::inserted(TransactionId(5), 0);
    let value = [0; 8140];
    let row: &[Value<'_>] = &[Value::Plain(&value)];
    let error = heap.add(&form, row, stamp).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }));
    assert_eq!(error.to_string(), "row is too big: size 8168, maximum size 8160");
}
