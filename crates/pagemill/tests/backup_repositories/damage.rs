//! Repositories that are damaged or not all there: each message names the file of the repository, and nothing is printed.
//!
//! The damage is done to copies of the repositories that the rows were compared of.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::pgbackrest::Backups;
use super::support::{done, refused, succeed};

const COUNT: [&str; 8] =
    ["count", "-d", "postgres", "-t", "long", "--until", "consistent", "--backup"];

/// Each way of damage to a copy of the repositories.
pub(super) fn damaged(backups: &Backups) -> Result<()> {
    of_names(backups)?;
    let labels = backups.labels(1)?;
    let (copy, of_copy) = copied(backups, 1)?;
    let file = table_file(backups)?;
    // The second chain is the one by gzip; its full backup has all files.
    let full = &labels[3];
    let stored = of_copy(full).join("pg_data").join(format!("{file}.gz"));
    let count = [&COUNT[..], &[full]].concat();
    done(&count, &copy)?;
    let whole = std::fs::read(&stored)?;
    let other = [&whole[..20], &whole[..whole.len() - 20]].concat();
    for (bytes, says) in
        [(&whole[..whole.len() / 2], "it was cut short"), (&other, "cannot be decompressed")]
    {
        std::fs::write(&stored, bytes)?;
        let said = refused(&count, &copy)?;
        ensure!(said.contains(&format!("{file}.gz")) && said.contains(says), "{says}: {said}");
    }
    std::fs::remove_file(&stored)?;
    let said = refused(&count, &copy)?;
    ensure!(said.contains(&format!("{file}.gz: no such file")), "{said}");
    of_manifests(&copy, &of_copy(full), full)?;
    of_bundles(backups)
}

fn of_names(backups: &Backups) -> Result<()> {
    let repository = backups.repository(1);
    for (words, says) in [
        (&["count", "-t", "long"][..], "or a backup of the repository with --backup"),
        (&["count", "-t", "long", "--backup", "x"], "stanza \"shop\" has no backup \"x\": it has "),
        (&["count", "-t", "long", "--backup", "latest", "--stanza", "x"], "it has shop"),
        (
            &["count", "-t", "long", "--backup", "latest", "--stanza", "../shop"],
            "no stanza \"../shop\"",
        ),
    ] {
        let said = refused(words, &repository)?;
        ensure!(said.contains(says), "{says}: {said}");
    }
    let said = refused(&["count", "-t", "long", "--backup", "latest"], backups.cluster.root())?;
    ensure!(said.contains("no repository of backups"), "{said}");
    Ok(())
}

/// A copy of a repository, and where backups lie in it.
fn copied(
    backups: &Backups,
    number: usize,
) -> Result<(std::path::PathBuf, impl Fn(&str) -> std::path::PathBuf)> {
    let copy = backups.cluster.root().join(format!("damaged{number}"));
    succeed(std::process::Command::new("cp").arg("-r").arg(backups.repository(number)).arg(&copy))?;
    let backup = copy.join("backup/shop");
    Ok((copy, move |label: &str| backup.join(label)))
}

/// The file of the long table as it was when the backups were taken: `base/5/N`.
fn table_file(backups: &Backups) -> Result<String> {
    let label = &backups.labels(1)?[3];
    let words =
        ["inspect", "-d", "postgres", "-t", "long", "--until", "consistent", "--backup", label];
    let shown = done(&words, &backups.repository(1))?;
    let at = shown.find("base/").context("no file")?;
    Ok(shown[at..]
        .split(|c: char| c.is_whitespace() || c == ',')
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn of_manifests(copy: &Path, backup: &Path, label: &str) -> Result<()> {
    let count = [&COUNT[..], &[label]].concat();
    let (manifest, twin) = (backup.join("backup.manifest"), backup.join("backup.manifest.copy"));
    let text = std::fs::read_to_string(&manifest)?;
    std::fs::write(&manifest, text.replacen("\"size\":", "\"size\":1", 1))?;
    let ls = ["ls", "-d", "postgres", "--until", "consistent", "--backup", label];
    // The second copy is good.
    done(&ls, copy)?;
    std::fs::remove_file(&twin)?;
    let said = refused(&count, copy)?;
    ensure!(
        said.contains("backup.manifest: corrupt") && said.contains("its checksum is"),
        "{said}"
    );
    for (from, to, says) in [
        ("backrest-format=5", "backrest-format=6", "repository format 6; format 5 is read"),
        ("[backup]", "[backup", "neither a section nor key=value"),
    ] {
        std::fs::write(&manifest, text.replacen(from, to, 1))?;
        let said = refused(&count, copy)?;
        ensure!(said.contains("backup.manifest: ") && said.contains(says), "{says}: {said}");
    }
    std::fs::write(&manifest, "Salted__")?;
    ensure!(refused(&count, copy)?.contains("repository is encrypted"), "encrypted");
    std::fs::remove_file(&manifest)?;
    ensure!(refused(&count, copy)?.contains("no manifest of the backup"), "no manifest");
    let info = copy.join("backup/shop/backup.info");
    std::fs::write(&info, "[")?;
    done(&["ls"], copy)?;
    std::fs::write(info.with_extension("info.copy"), "[")?;
    let said = refused(&["ls"], copy)?;
    ensure!(said.contains("backup.info: corrupt"), "{said}");
    Ok(())
}

/// Bundles that are cut and gone.
fn of_bundles(backups: &Backups) -> Result<()> {
    let label = &backups.labels(2)?[0];
    let (copy, of_copy) = copied(backups, 2)?;
    let bundles = of_copy(label).join("bundle");
    let count = [&COUNT[..], &[label]].concat();
    for entry in std::fs::read_dir(&bundles)? {
        std::fs::write(entry?.path(), "")?;
    }
    let said = refused(&count, &copy)?;
    ensure!(!said.contains("panicked"), "{said}");
    std::fs::remove_dir_all(&bundles)?;
    let said = refused(&count, &copy)?;
    ensure!(said.contains("/bundle/") && said.contains("no such file"), "{said}");
    Ok(())
}
