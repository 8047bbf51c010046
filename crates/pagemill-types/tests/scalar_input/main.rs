//! The server and the readers of `types::input` are given the same texts, and must store the same
//! bytes or refuse them in the same words.
//!
//! The server calls a type's own input function for each text, keeps what it accepts in a table and
//! notes what it says to the rest. It is stopped then, and the table's pages are compared with what
//! the readers make of the texts. Texts are a list of telling ones per type, and random mixtures of
//! what means something to it.

mod cases;
mod server;

use anyhow::{Context, Result, ensure};
use pagemill_format::ids::{Oid, PgVersion};
use pagemill_testkit::PgInstall;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_types::builtin::oid::MONEY;
use pagemill_types::input::{Characters, money::read_money, scalar_reader};
use pagemill_types::money::MoneyFormat;

use cases::Case;
use server::Answer;

/// A database's encoding.
struct Encoding {
    name: &'static str,
    number: i32,
}

/// What the reader makes of a text.
fn read(version: PgVersion, encoding: &Encoding, case: &Case) -> Result<Answer> {
    let mut value = Vec::new();
    let read = if case.kind.oid == MONEY {
        let format = MoneyFormat::for_locale("C").context("the locale C")?;
        read_money(&case.text, &format, &mut value)
    } else {
        let characters = Characters::of_encoding(encoding.number).context("an encoding")?;
        let reader = scalar_reader(version, characters, Oid(case.kind.oid.0));
        reader.context("a reader")?(&case.text, case.kind.typmod, &mut value)
    };
    Ok(match read {
        Ok(()) => Answer::Stored(value),
        Err(error) => Answer::Refused(error.message),
    })
}

/// Texts for a database of an encoding.
struct Database {
    encoding: Encoding,
    cases: Vec<Case>,
}

/// What differs in a database.
fn faults(version: PgVersion, database: &Database, answers: &[Answer]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (case, expected) in database.cases.iter().zip(answers) {
        let found = read(version, &database.encoding, case)?;
        if found != *expected {
            let text = String::from_utf8_lossy(&case.text);
            let (encoding, name, typmod) =
                (database.encoding.name, case.kind.name, case.kind.typmod);
            faults.push(format!(
                "{encoding} {name} {typmod} {text:?}: {found:?}, server {expected:?}"
            ));
        }
    }
    Ok(faults)
}

fn check(install: &PgInstall) -> Result<()> {
    let version = PgVersion::from_major(install.major).context("a version we read")?;
    let mut cluster = empty_cluster(install)?;
    let databases = databases(version);
    let answers = server::answers(&mut cluster, &databases)?;
    let mut found = Vec::new();
    for (database, answers) in databases.iter().zip(&answers) {
        found.extend(faults(version, database, answers)?);
        // A server that refuses nearly everything would make this test a hollow one.
        let stored = answers.iter().filter(|answer| matches!(answer, Answer::Stored(_))).count();
        let (all, encoding) = (answers.len(), database.encoding.name);
        ensure!(stored * 5 > all, "only {stored} of {all} are accepted in {encoding}");
    }
    let shown = found.get(..found.len().min(40)).unwrap_or_default();
    ensure!(found.is_empty(), "{} texts:\n{}", found.len(), shown.join("\n"));
    Ok(())
}

fn databases(version: PgVersion) -> Vec<Database> {
    let of_characters = |name, number, characters: &[&[u8]]| Database {
        encoding: Encoding { name, number },
        cases: cases::of_text_types(characters),
    };
    vec![
        Database {
            encoding: Encoding { name: "UTF8", number: 6 },
            cases: cases::of_every_type(version),
        },
        of_characters("SQL_ASCII", 0, &[b"\xE4", b"\xC3\xA4", b"\x80"]),
        of_characters("LATIN1", 8, &[b"\xE4", b"\xA0"]),
        of_characters("EUC_JP", 1, &[b"\xB0\xA1", b"\x8E\xB1", b"\x8F\xB0\xA1"]),
        of_characters("EUC_TW", 4, &[b"\xC4\xE3", b"\x8E\xA2\xA1\xA1"]),
        of_characters("MULE_INTERNAL", 7, &[b"\x81\xC0", b"\x92\xB0\xA1"]),
    ]
}

#[test]
fn scalar_values_are_stored_and_refused_as_the_server_does() {
    pagemill_testkit::each_of(&PgInstall::all(), check);
}
