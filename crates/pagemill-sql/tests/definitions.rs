//! Definitions written out from the files, held against those that the server writes of the same objects.
//!
//! The objects are views, indexes, constraints, triggers, statistics and functions of every form, some with columns that were
//! renamed, added or dropped since; the server's own views, those of `information_schema` among them, are compared as well.

#[path = "definitions/made.rs"]
mod made;

use std::process::Command;

use anyhow::{Result, ensure};
use made::MADE;
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const ASKED: [&str; 16] = [
    "select c.oid, relname, pg_get_viewdef(c.oid), pg_get_viewdef(c.oid, true), pg_get_viewdef(c.oid, 80) from pg_class c
        where relkind in ('v', 'm') order by 1",
    "select indexrelid, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true),
        pg_get_indexdef(indexrelid, 1, true), pg_get_indexdef(indexrelid, 2, false) || '.' from pg_index order by 1",
    "select oid, conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint order by 1",
    "select oid, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) from pg_attrdef order by 1",
    "select oid, pg_get_expr(relpartbound, oid), pg_get_partition_constraintdef(oid) from pg_class
        where relpartbound is not null order by 1",
    "select partrelid, pg_get_partkeydef(partrelid) from pg_partitioned_table order by 1",
    "select oid, pg_get_function_arguments(oid) || '.', pg_get_function_identity_arguments(oid) || '.', pg_get_function_result(oid)
        from pg_proc order by 1",
    "select oid, pg_get_function_sqlbody(oid), pg_get_functiondef(oid) from pg_proc where prokind <> 'a' order by 1",
    "select oid, pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) from pg_trigger order by 1",
    "select oid, pg_get_statisticsobjdef(oid), pg_get_statisticsobjdef_columns(oid) from pg_statistic_ext order by 1",
    "select oid, pg_get_ruledef(oid), pg_get_ruledef(oid, true) from pg_rewrite order by 1",
    "select * from d.v01 order by id",
    "select * from d.v03",
    "select * from d.v05 order by 1, 2",
    "select * from d.v21 order by 1, 2",
    "select polname, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid, true) from pg_policy order by 1",
];

fn answered(cluster: &TestCluster, statement: &str) -> Result<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(cluster.data_dir());
    program.args(["-d", "postgres", "--format", "csv", statement]);
    let output = program.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{statement}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Minor versions before 15.20, and those of its time, had other parentheses about `IS DOCUMENT`, and no AS before the other name of a
/// table whose rows are changed: what they write cannot be told from the files, which do not say the minor version.
fn as_older_versions(text: &str) -> String {
    let plain = "'<a/>'::xml IS DOCUMENT";
    let text = text
        .replace("('<a/>'::xml IS DOCUMENT)", plain)
        .replace("('<a/>'::xml) IS DOCUMENT", plain);
    let lines = text.split('\n').map(|line| {
        let commands = ["UPDATE ", "DELETE FROM ", "MERGE INTO "];
        let begun = commands.iter().filter_map(|word| Some(line.find(word)? + word.len())).min();
        let Some((before, behind)) = begun.map(|at| line.split_at(at)) else { return line.into() };
        match behind.split_once(" AS ") {
            Some((table, rest)) if !table.trim_start_matches("ONLY ").contains(' ') => {
                format!("{before}{table} {rest}")
            }
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    for (_, objects) in MADE.iter().filter(|(major, _)| *major <= install.major) {
        cluster.psql("postgres", objects)?;
    }
    let mut expected = Vec::new();
    for statement in ASKED {
        let mut psql = cluster.psql_command("postgres");
        let output = psql.args(["-X", "--csv", "-c", statement]).env("PGTZ", "UTC").output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statement}: {errors}");
        expected.push(String::from_utf8(output.stdout)?);
    }
    cluster.stop()?;
    let is_older = !expected[0].contains("('<a/>'::xml IS DOCUMENT)");
    for (statement, expected) in ASKED.iter().zip(expected) {
        let found = answered(&cluster, statement)?;
        let [found, expected] = [found, expected].map(|text| match is_older {
            true => as_older_versions(&text),
            false => text,
        });
        for (found, expected) in found.lines().zip(expected.lines()) {
            ensure!(found == expected, "{statement}\n{found}\n{expected}");
        }
        ensure!(found.len() == expected.len(), "{statement}: as many rows");
    }
    Ok(())
}

#[test]
fn definitions_are_written_as_the_server_writes_them() {
    each_of(&PgInstall::spread(), check);
}
