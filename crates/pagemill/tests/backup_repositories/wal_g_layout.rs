//! A folder as WAL-G makes it, made here out of two backups by `pg_basebackup`: a full backup, and a delta backup on it.
//!
//! So that WAL-G itself need not be there: names, sentinels, lists of files and increments are written as its sources say
//! (`backup_sentinel_dto.go`, `incremental_page_reader.go` in `internal/databases/postgres`, WAL-G 3.0). What WAL-G writes, the test of
//! `PAGEMILL_WAL_G` reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of};
use serde_json::{Value, json};

use super::support::{done, start_load, stop_load, succeed};
use super::tables::{LOAD, archive_all, make_tables, rows, same_rows};

const BLOCK: usize = 8192;
/// What lies in archives of its own, or in none.
const APART: [&str; 4] = ["global/pg_control", "backup_label", "tablespace_map", "backup_manifest"];

/// A backup by `pg_basebackup`, with its tablespace in place of the link.
struct Copied {
    root: PathBuf,
    start: u64,
    segment: String,
}

impl Copied {
    fn take(cluster: &TestCluster, name: &str) -> Result<Self> {
        let (root, space) =
            (cluster.root().join(name), cluster.root().join(format!("{name}-space")));
        let mut backup = cluster.account().command(&cluster.install().program("pg_basebackup"));
        let psql = cluster.psql_command("postgres");
        backup.envs(psql.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mapping =
            format!("{}={}", cluster.tablespace_dir("elsewhere")?.display(), space.display());
        backup.env_remove("PGDATABASE").args(["-X", "none", "-c", "fast", "-T", &mapping, "-D"]);
        succeed(backup.arg(&root))?;
        let link =
            std::fs::read_dir(root.join("pg_tblspc"))?.next().context("a tablespace")??.path();
        std::fs::remove_file(&link)?;
        std::fs::rename(&space, &link)?;
        let label = std::fs::read_to_string(root.join("backup_label"))?;
        let line = label.lines().next().context("a line")?;
        let word = |number| line.split_whitespace().nth(number).context("a word");
        let (high, low) = word(3)?.split_once('/').context("an LSN")?;
        let start = u64::from_str_radix(high, 16)? << 32 | u64::from_str_radix(low, 16)?;
        Ok(Self { root, start, segment: word(5)?.trim_end_matches(')').to_owned() })
    }

    /// All files but those that lie apart, by their names.
    fn files(&self) -> Result<BTreeMap<String, PathBuf>> {
        let (mut found, mut waiting) = (BTreeMap::new(), vec![self.root.clone()]);
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(&directory)? {
                let path = entry?.path();
                let name = path.strip_prefix(&self.root)?.to_str().context("a name")?.to_owned();
                match path.is_dir() {
                    true => waiting.push(path),
                    false if APART.contains(&name.as_str()) => {}
                    false => drop(found.insert(name, path)),
                }
            }
        }
        Ok(found)
    }
}

/// What is written of a backup that builds on another: the files that the archive has, and the list.
fn delta(newer: &Copied, older: &Copied, stage: &Path) -> Result<Value> {
    let (before, mut list) = (older.files()?, serde_json::Map::new());
    let mut kinds = [0; 3];
    for (name, path) in newer.files()? {
        let contents = std::fs::read(&path)?;
        let old = before.get(&name).map(std::fs::read).transpose()?;
        let last = name.rsplit('/').next().unwrap_or_default();
        // Whole where the server was just making it longer, as WAL-G has it (`isPagedFile`).
        let is_relation = (name.starts_with("base/") || name.starts_with("pg_tblspc/"))
            && contents.len().is_multiple_of(BLOCK)
            && last.bytes().all(|byte| byte.is_ascii_digit());
        let (kind, stored) = match old {
            Some(old) if old == contents => (0, None),
            Some(_) if is_relation => (1, Some(increment(&contents, older.start)?)),
            _ => (2, Some(contents)),
        };
        kinds[kind] += 1;
        list.insert(
            format!("/{name}"),
            json!({"IsSkipped": kind == 0, "IsIncremented": kind == 1}),
        );
        if let Some(stored) = stored {
            let to = stage.join(&name);
            std::fs::create_dir_all(to.parent().context("a directory")?)?;
            std::fs::write(to, stored)?;
        }
    }
    ensure!(kinds.iter().all(|count| *count > 0), "unchanged, increments, whole: {kinds:?}");
    Ok(json!({ "Files": list }))
}

/// The blocks of a file that changed since: those whose LSN says so, and those that are zeros.
fn increment(contents: &[u8], since: u64) -> Result<Vec<u8>> {
    let number =
        |bytes: &[u8]| Ok::<_, anyhow::Error>(u64::from(u32::from_le_bytes(bytes.try_into()?)));
    let (mut numbers, mut blocks) = (Vec::new(), Vec::new());
    for (block, page) in contents.chunks(BLOCK).enumerate() {
        let lsn = number(&page[..4])? << 32 | number(&page[4..8])?;
        if lsn >= since || page.iter().all(|byte| *byte == 0) {
            numbers.extend((block as u32).to_le_bytes());
            blocks.extend_from_slice(page);
        }
    }
    let (len, count) = (contents.len() as u64, numbers.len() as u32 / 4);
    Ok([&b"wi1U"[..], &len.to_le_bytes(), &count.to_le_bytes(), &numbers, &blocks].concat())
}

/// The archives of a backup, members named with a slash in front, and its sentinel.
fn store(
    folder: &Path,
    copied: &Copied,
    (name, files): (&str, &Path),
    parent: Option<&str>,
) -> Result<()> {
    let parts = folder.join("basebackups_005").join(name).join("tar_partitions");
    std::fs::create_dir_all(&parts)?;
    let tar = |archive: &str, at: &Path, words: &[&str]| {
        let mut tar = Command::new("tar");
        tar.args(["-P", "--format=ustar", "--transform", r"s,^\(\./\)\?,/,", "-cf"]);
        succeed(tar.arg(parts.join(archive)).arg("-C").arg(at).args(words)).map(drop)
    };
    let left_out = APART.map(|name| format!("--exclude=./{name}"));
    let words: Vec<&str> = left_out.iter().map(String::as_str).chain(["."]).collect();
    tar("part_001.tar", files, &words)?;
    succeed(Command::new("gzip").arg(parts.join("part_001.tar")))?;
    tar("pg_control.tar", &copied.root, &["global/pg_control"])?;
    tar("backup_label.tar", &copied.root, &["backup_label"])?;
    let sentinel = json!({
        "LSN": copied.start, "DeltaFrom": parent, "PgVersion": 150000, "UncompressedSize": 1, "CompressedSize": 1,
        "StartTime": "2026-01-01T00:00:00Z", "FinishTime": "2026-01-01T00:01:00Z", "Version": 2,
    });
    let path = folder.join("basebackups_005").join(format!("{name}_backup_stop_sentinel.json"));
    Ok(std::fs::write(path, sentinel.to_string())?)
}

fn reads_a_folder(install: &PgInstall) -> Result<()> {
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    let folder = cluster.root().join("folder");
    cluster.account().create_dir(&folder)?;
    cluster.account().create_dir(&folder.join("wal_005"))?;
    let to = folder.join("wal_005");
    cluster.psql("postgres", "alter system set archive_mode = on")?;
    let archive = format!("alter system set archive_command = 'cp %p {}/%f'", to.display());
    cluster.psql("postgres", &archive)?;
    cluster.stop()?;
    cluster.start()?;
    make_tables(&cluster)?;
    let full = Copied::take(&cluster, "full")?;
    cluster.psql("postgres", "delete from shrinks where i > 500")?;
    cluster.psql("postgres", "vacuum shrinks")?;
    let load = start_load(&cluster, LOAD)?;
    let newer = Copied::take(&cluster, "newer");
    stop_load(&cluster, load)?;
    let newer = newer?;
    let moment = cluster.psql("postgres", "select now()")?;
    let rows_at_moment = rows(&cluster)?;
    cluster.psql("postgres", "delete from orders; drop table long")?;
    cluster.psql("postgres", "create table long (i int, v text)")?;
    archive_all(&cluster)?;
    let rows_now = rows(&cluster)?;
    let full_name = format!("base_{}", full.segment);
    let delta_name = format!("base_{}_D_{}", newer.segment, full.segment);
    store(&folder, &full, (&full_name, &full.root), None)?;
    let stage = cluster.root().join("stage");
    let list = delta(&newer, &full, &stage)?;
    store(&folder, &newer, (&delta_name, &stage), Some(&full_name))?;
    let path = folder.join("basebackups_005").join(&delta_name).join("files_metadata.json");
    std::fs::write(path, list.to_string())?;
    let until = format!("time:{}", moment.trim());
    for label in [&full_name, &delta_name] {
        same_rows(&folder, &["--backup", label, "--until", &until], &rows_at_moment)?;
    }
    same_rows(&folder, &["--backup", "latest"], &rows_now)?;
    let text = done(&["ls"], &folder)?;
    ensure!(text.contains("delta") && text.contains(&full_name), "{text}");
    Ok(())
}

#[test]
fn a_folder_as_wal_g_makes_it_has_the_rows_of_its_server() {
    let installs: Vec<PgInstall> = PgInstall::find(15).into_iter().collect();
    each_of(&installs, reads_a_folder);
}
