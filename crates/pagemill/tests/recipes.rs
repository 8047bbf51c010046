//! The recipes of the guide, run word for word, from top to bottom as one session, as the account of a server.
//!
//! What is left out measures the storage for minutes. A recipe that fails, or prints something else than is said here, is a
//! page of the guide that is wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{PgInstall, TestCluster, in_checkout, skipped};

/// Its commands take minutes.
const LEFT_OUT: &str = "Derive settings from measurements";

/// It needs a program that is not everywhere.
const OF_PGBACKREST: &str = "One table out of a pgBackRest repository";

/// The status of one of its commands is 1, as the page says.
const ENDS_WITH_DAMAGE: &str = "Save what is left of a damaged table";

/// What the recipes print, of much else: a line each, in this order.
const PRINTED: [&str; 8] = [
    "the same",
    "public.events\t100000",
    "public.orders\t100001",
    "block 7: checksum",
    "mixed.csv,2,born,2001-02-30,",
    "shop_test2",
    "100002",
    "Total ",
];

/// The commands of a page, recipe by recipe.
fn script(page: &str) -> String {
    let has_pgbackrest = Path::new("/usr/bin/pgbackrest").exists();
    if !has_pgbackrest {
        skipped(format!("{OF_PGBACKREST}: install the package pgbackrest"));
    }
    let is_left_out = |section: &&str| {
        section.starts_with(LEFT_OUT) || section.starts_with(OF_PGBACKREST) && !has_pgbackrest
    };
    let sections = page.split("\n## ").skip(1).filter(|section| !is_left_out(section));
    let blocks = sections.flat_map(|section| {
        let guard = if section.starts_with(ENDS_WITH_DAMAGE) { "set +e" } else { "set -e" };
        let parts = section.split("```sh\n").skip(1);
        parts.map(move |part| {
            format!("{guard}\n{}\n", part.split("\n```").next().unwrap_or_default())
        })
    });
    blocks.collect()
}

fn run(directory: &Path, install: &PgInstall) -> Result<String> {
    let page = in_checkout("docs/guide/src/recipes.md");
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    fs::write(directory.join("recipes.sh"), script(&text))?;
    // The account may not get to where cargo builds.
    fs::copy(env!("CARGO_BIN_EXE_pagemill"), directory.join("pagemill"))?;
    fs::set_permissions(directory.join("pagemill"), fs::Permissions::from_mode(0o755))?;
    let account = TestCluster::at(install, directory.join("cluster"))?.account();
    account.own(directory)?;
    let mut bash = account.command(Path::new("bash"));
    let path = format!("{}:{}", directory.display(), std::env::var("PATH")?);
    bash.current_dir(directory).arg("recipes.sh").env("PATH", path).env("HOME", directory);
    let output = bash.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{}: {printed}{said}", output.status);
    Ok(printed)
}

#[test]
fn every_recipe_works_as_it_stands() {
    let Some(install) = PgInstall::find(15) else { panic!("PostgreSQL 15 is not installed") };
    // A short name: a socket lies in it.
    let directory = tempfile::Builder::new().prefix("pagemill-guide").tempdir_in("/tmp").unwrap();
    let printed = run(directory.path(), &install).unwrap();
    let mut rest = &printed[..];
    for expected in PRINTED {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("{expected} is not in what follows:\n{rest}"));
        rest = &rest[at + expected.len()..];
    }
}
