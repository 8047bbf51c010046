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
use pagemill_format::types::input::{Characters, money::read_money, scalar_reader};
use pagemill_format::types::money::{MONEY_OID, MoneyFormat};
use pagemill_testkit::PgInstall;
use pagemill_testkit::prepared::empty_cluster;

use cases::Case;
use server::Answer;

/// A database's encoding.
struct Encoding {
    name: &'static str,
    number: i32,
}

const UTF8: Encoding = Encoding { name: "UTF8", number: 6 };

/// What the reader makes of a text.
fn read(version: PgVersion, encoding: &Encoding, case: &Case) -> Result<Answer> {
    let mut value = Vec::new();
    let read = if case.kind.oid == MONEY_OID {
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

fn check(install: &PgInstall, encoding: &Encoding, cases: &[Case]) -> Result<()> {
    let version = PgVersion::from_major(install.major).context("a version we read")?;
    let mut cluster = empty_cluster(install)?;
    let answers = server::answers(&mut cluster, encoding.name, cases)?;
    let mut faults = Vec::new();
    let mut stored = 0;
    for (case, expected) in cases.iter().zip(&answers) {
        let found = read(version, encoding, case)?;
        stored += usize::from(matches!(expected, Answer::Stored(_)));
        if found != *expected {
            let text = String::from_utf8_lossy(&case.text);
            let (name, typmod) = (case.kind.name, case.kind.typmod);
            faults.push(format!("{name} {typmod} {text:?}: {found:?}, server {expected:?}"));
        }
    }
    let many = faults.len();
    faults.truncate(40);
    ensure!(many == 0, "{many} of {} differ:\n{}", cases.len(), faults.join("\n"));
    // A server that refuses nearly everything would make this test a hollow one.
    ensure!(stored * 5 > cases.len(), "only {stored} of {} are accepted", cases.len());
    Ok(())
}

fn every_version(encoding: &Encoding, cases: impl Fn(PgVersion) -> Vec<Case>) {
    assert!(PgInstall::find(15).is_some(), "PostgreSQL 15 is needed (ci/install-postgres.sh)");
    let mut failures = Vec::new();
    for install in PgInstall::all() {
        let Some(version) = PgVersion::from_major(install.major) else { continue };
        if let Err(error) = check(&install, encoding, &cases(version)) {
            failures.push(format!("PostgreSQL {version}: {error:#}"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn scalar_values_are_stored_and_refused_as_the_server_does() {
    every_version(&UTF8, cases::of_every_type);
}

#[test]
fn lengths_are_counted_in_characters_of_the_encoding() {
    let encodings = [
        (Encoding { name: "SQL_ASCII", number: 0 }, &[&b"\xE4"[..], b"\xC3\xA4", b"\x80"][..]),
        (Encoding { name: "LATIN1", number: 8 }, &[b"\xE4", b"\xA0"]),
        (Encoding { name: "EUC_JP", number: 1 }, &[b"\xB0\xA1", b"\x8E\xB1", b"\x8F\xB0\xA1"]),
        (Encoding { name: "EUC_TW", number: 4 }, &[b"\xC4\xE3", b"\x8E\xA2\xA1\xA1"]),
        (Encoding { name: "MULE_INTERNAL", number: 7 }, &[b"\x81\xC0", b"\x92\xB0\xA1"]),
    ];
    for (encoding, characters) in encodings {
        every_version(&encoding, |_| cases::of_text_types(characters));
    }
}
