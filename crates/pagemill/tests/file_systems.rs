//! Reading asks nothing of files that another file system could not answer: every answer over the fixtures is the same from
//! memory, and over a network's distances, as from the operating system's files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pagemill::{Cluster, ExportOptions, OpenOptions, Storage, Table};
use pagemill_cluster::RelationKind;
use pagemill_engine::list;
use pagemill_io::slow_files::SlowFiles;
use pagemill_io::{HostFiles, MemoryFiles};
use pagemill_testkit::{Prepared, every_version};

/// What a call takes over a network.
const FAR: Duration = Duration::from_millis(30);
/// The most calls in a row that listing a database takes.
const MOST_IN_A_ROW: u64 = 40;

/// What was asked, and the answer, or why there is none.
type Answers = BTreeMap<String, String>;

fn answer<T>(
    answers: &mut Answers,
    asked: String,
    found: Result<T>,
    text: impl FnOnce(T) -> String,
) {
    let found = found.map_or_else(|error| format!("error: {error:#}"), text);
    answers.insert(asked, found);
}

fn lossless(bytes: &[u8]) -> String {
    bytes.iter().copied().flat_map(std::ascii::escape_default).map(char::from).collect()
}

fn copied(table: &Table) -> Result<String> {
    let mut text = Vec::new();
    table.copy_to(&mut text, &ExportOptions::default())?;
    Ok(lossless(&text))
}

/// The addresses of all rows in the order of an index, and their first column.
fn ordered(table: &Table, index: &str, backward: bool) -> Result<String> {
    let columns: Vec<&str> = table.columns().iter().take(1).map(|column| &*column.name).collect();
    let mut rows = table.rows_in_order(index, backward, &columns)?;
    let mut text = String::new();
    while let Some(mut row) = rows.next_row()? {
        text += &format!("{} {:?}\n", row.tid(), row.bytes(0)?.map(lossless));
    }
    Ok(text)
}

/// Everything that reading can answer about a database.
fn read_all(storage: &Storage, data: &Path, name: &str, answers: &mut Answers) -> Result<()> {
    let inner = pagemill_cluster::Cluster::open(storage.clone(), data, OpenOptions::default())?;
    let listed = inner.database(name)?;
    answer(
        answers,
        format!("{name}: ls"),
        list::relations(&listed, true).map_err(Into::into),
        |found| found.iter().map(|entry| format!("{entry:?}\n")).collect(),
    );
    let database =
        Cluster::open_with(storage.clone(), data, OpenOptions::default())?.database(name)?;
    // One without tables of its own says so.
    for table in database.tables().unwrap_or_default() {
        let asked = format!("{name}.{}", table.name());
        answer(answers, format!("{asked}: count"), table.count().map_err(Into::into), |n| {
            n.to_string()
        });
        answer(answers, format!("{asked}: export"), copied(&table), |text| text);
    }
    for class in listed.classes().iter().filter(|class| class.kind == RelationKind::Table) {
        let schema = listed.schema_of(class)?;
        // The catalogs are much the same in all of them.
        if *schema == *b"pg_catalog" && name != "types" {
            continue;
        }
        let quoted =
            |name: &[u8]| format!("\"{}\"", String::from_utf8_lossy(name).replace('"', "\"\""));
        let Ok(table) = database.table(&format!("{}.{}", quoted(&schema), quoted(&class.name)))
        else {
            continue;
        };
        for row in listed.indexes_of(class.oid)? {
            let Some(index) = listed.class(row.oid) else { continue };
            let index = String::from_utf8_lossy(&index.name).into_owned();
            for backward in [false, true] {
                let asked = format!("{name}.{}: by {index}, backward {backward}", table.name());
                answer(answers, asked, ordered(&table, &index, backward), |text| text);
            }
        }
    }
    Ok(())
}

fn answers(storage: &Storage, prepared: &Prepared) -> Result<Answers> {
    let (mut answers, data) = (Answers::new(), prepared.data_dir());
    let cluster = pagemill_cluster::Cluster::open(storage.clone(), &data, OpenOptions::default())?;
    answer(&mut answers, "ls".into(), list::databases(&cluster).map_err(Into::into), |found| {
        found.iter().map(|entry| format!("{entry:?}\n")).collect()
    });
    for database in prepared.databases() {
        read_all(storage, &data, &database.name, &mut answers).context(database.name.clone())?;
    }
    Ok(answers)
}

fn in_memory(prepared: &Prepared) -> Result<Arc<MemoryFiles>> {
    Ok(Arc::new(MemoryFiles::load(&HostFiles::real(), &prepared.data_dir())?))
}

fn compare(found: &Answers, expected: &Answers) -> Result<()> {
    ensure!(found.keys().eq(expected.keys()), "other things could be asked");
    for (asked, expected) in expected {
        ensure!(
            found[asked] == *expected,
            "{asked}: {:.400}\nand not {expected:.400}",
            found[asked]
        );
    }
    Ok(())
}

#[test]
fn every_answer_is_the_same_from_memory_and_over_a_network() {
    every_version(|prepared| {
        let expected = answers(&Storage::real(), prepared)?;
        let errors = expected.values().filter(|answer| answer.starts_with("error: ")).count();
        ensure!(
            expected.len() > 100 && errors < expected.len() / 10,
            "{errors} of {}",
            expected.len()
        );
        let memory = in_memory(prepared)?;
        compare(&answers(&Storage::new(memory.clone()), prepared)?, &expected).context("memory")?;
        let slow = Storage::new(Arc::new(SlowFiles::new(memory, FAR)));
        compare(&answers(&slow, prepared)?, &expected).context("slow")
    });
}

#[test]
fn a_database_is_listed_over_a_network_in_few_calls_in_a_row() {
    every_version(|prepared| {
        let memory = in_memory(prepared)?;
        for database in prepared.databases() {
            let slow = SlowFiles::new(memory.clone(), FAR);
            let (storage, data) = (Storage::new(Arc::new(slow.clone())), prepared.data_dir());
            let cluster = pagemill_cluster::Cluster::open(storage, &data, OpenOptions::default())?;
            let listed = list::relations(&cluster.database(&database.name)?, true)?;
            ensure!(!listed.is_empty());
            let (calls, in_a_row) = (slow.calls(), slow.calls_in_a_row());
            println!("{}: {calls} calls, {in_a_row} in a row", database.name);
            ensure!(in_a_row <= MOST_IN_A_ROW, "{}: {in_a_row}\n{}", database.name, slow.report());
        }
        Ok(())
    });
}
