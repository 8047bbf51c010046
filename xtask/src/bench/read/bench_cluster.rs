//! The ground a race is run on: a loaded cluster, perhaps copied to a device that was made for it.
//!
//! One ground exists at a time, since each is some gigabytes. Invariant: when a ground is dropped its device, mount
//! and control groups are gone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pagemill_testkit::page_cache::{Residency, drop_files, read_files, residency};
use pagemill_testkit::{ControlGroup, FileSystem, ReadLimit, Unavailable, Volume};
use serde_json::json;

use super::options::Options;
use super::rows::{ClusterKind, INDEX, Table};
use crate::bench::server::{Cluster, Contents, LaunchOptions, Server};
use crate::workspace;

/// Bytes of one row on its page, header and line pointer included, and of an index entry.
const T_ROW_BYTES: u64 = 690;
const BIGTABLE_ROW_BYTES: u64 = 85;

const BLOCK_BYTES: u64 = 8192;
const MIB: u64 = 1 << 20;

/// The table without rows, for what reading the catalogs costs.
pub(super) const EMPTY_TABLE: &str = "nothing";

/// A table's files and size.
pub(super) struct Files {
    pub(super) rows: u64,
    pub(super) blocks: u64,
    /// The segments of its main fork.
    pub(super) heap: Vec<PathBuf>,
    /// Those, its other forks, and its index.
    pub(super) all: Vec<PathBuf>,
}

impl Files {
    /// Drops the table from the page cache; an error when a page stayed.
    pub(super) fn drop_all(&self) -> Result<()> {
        drop_files(&self.all)
    }

    pub(super) fn read_all(&self) -> Result<()> {
        read_files(&self.all)
    }

    pub(super) fn residency(&self) -> Result<Residency> {
        residency(&self.all)
    }
}

/// A cluster that races can be run on.
pub(super) struct BenchCluster {
    pub(super) cluster: Cluster,
    t: Files,
    bigtable: Files,
    /// The control group that makes its device slow.
    pub(super) slow: Option<ControlGroup>,
    pub(super) volume: Option<Volume>,
    /// What a report should say of it.
    pub(super) facts: Vec<(&'static str, String)>,
}

impl BenchCluster {
    /// Loads what is missing; loads anew where the page cache must be as the server left it.
    pub(super) fn prepare(
        place: ClusterKind,
        options: &Options,
        fresh: bool,
    ) -> Result<Result<Self, Unavailable>> {
        let source = if place == ClusterKind::Checksums { place } else { ClusterKind::Plain };
        let (cluster, fresh) = (open(source, options)?, fresh || options.fresh);
        load(&cluster, source, options, fresh && source == place)?;
        if source == place {
            return Self::new(cluster, options, None, None).map(Ok);
        }
        let (volume, slow) = match device(place, &cluster, options) {
            Ok(made) => made,
            Err(unavailable) => return Ok(Err(unavailable)),
        };
        let copy = cluster.copy_to(&volume.path().join("cluster"))?;
        let mut bench_cluster = Self::new(copy, options, Some(volume), Some(slow))?;
        bench_cluster.facts.push(("limit of each device", limit(place, options).1));
        Ok(Ok(bench_cluster))
    }

    fn new(
        cluster: Cluster,
        options: &Options,
        volume: Option<Volume>,
        slow: Option<ControlGroup>,
    ) -> Result<Self> {
        let server = cluster.start(LaunchOptions {
            core: None,
            shared_buffers: "16MB",
            group: None,
            settings: &[],
        })?;
        let t = files(&cluster, &server, Table::T, options.rows)?;
        let bigtable = files(&cluster, &server, Table::Bigtable, options.bigtable_rows)?;
        drop(server);
        let mut facts = vec![("t, MiB", (t.blocks * BLOCK_BYTES / MIB).to_string())];
        facts.push(("bigtable, MiB", (bigtable.blocks * BLOCK_BYTES / MIB).to_string()));
        facts.push(("postgresql", cluster.version()));
        if let Some(volume) = &volume {
            facts.push(("read_ahead_kb of the file system", volume.read_ahead_kb()?.to_string()));
        }
        Ok(Self { cluster, t, bigtable, slow, volume, facts })
    }

    pub(super) fn files(&self, table: Table) -> &Files {
        match table {
            Table::T => &self.t,
            Table::Bigtable => &self.bigtable,
        }
    }

    /// Bytes read so far from each device that was made.
    pub(super) fn device_bytes(&self) -> Result<Vec<u64>> {
        let devices = self.volume.iter().flat_map(Volume::devices);
        devices.map(pagemill_testkit::LoopDevice::bytes_read).collect()
    }
}

/// Where everything lies.
pub(super) fn directory(options: &Options) -> PathBuf {
    let default = || workspace::root().join("target/bench-read");
    options.run.directory.clone().unwrap_or_else(default)
}

/// The cluster of a place that is no copy.
pub(super) fn open(place: ClusterKind, options: &Options) -> Result<Cluster> {
    let (name, major) =
        if place == ClusterKind::Checksums { ("checksums", 18) } else { ("plain", 15) };
    Cluster::open(&directory(options).join(name), major)
}

fn load(cluster: &Cluster, place: ClusterKind, options: &Options, fresh: bool) -> Result<()> {
    let data_checksums = place == ClusterKind::Checksums;
    let mark = json!({
        "rows": options.rows,
        "bigtable_rows": options.bigtable_rows,
        "data_checksums": data_checksums,
    });
    if !fresh && cluster.holds(&mark) {
        eprintln!("reusing the cluster in {}", cluster.directory.display());
        return Ok(());
    }
    let tables = options.rows * T_ROW_BYTES + options.bigtable_rows * BIGTABLE_ROW_BYTES;
    cluster.announce("a cluster and copies on devices", 4 * tables + 2048 * MIB)?;
    eprintln!("loading {} ...", place.name());
    let statements = statements(options);
    let contents = Contents { data_checksums, statements: &statements, mark };
    let launch = LaunchOptions {
        core: None,
        shared_buffers: &options.sides.shared_buffers,
        group: None,
        settings: &[],
    };
    cluster.make(&contents, launch, |_| Ok(()))
}

fn statements(options: &Options) -> Vec<String> {
    let (rows, bigtable_rows) = (options.rows, options.bigtable_rows);
    let column = "(random() * 2147483647)::int4 as";
    vec![
        format!(
            "create table t as select repeat('a',100)||i||repeat('b',500) as filler \
             from generate_series(1,{rows}) i"
        ),
        "select setseed(0.25)".to_owned(),
        format!(
            "create table bigtable as select {column} a, {column} b, {column} c \
             from generate_series(1,{bigtable_rows})"
        ),
        format!("create index {INDEX} on bigtable (a, b, c)"),
        format!("create table {EMPTY_TABLE} (a int4)"),
        "vacuum (freeze, analyze) t".to_owned(),
        "vacuum (freeze, analyze) bigtable".to_owned(),
        "checkpoint".to_owned(),
    ]
}

/// The size and the files of a table; asks the catalogs only, so that the page cache stays as it is.
fn files(cluster: &Cluster, server: &Server<'_>, table: Table, rows: u64) -> Result<Files> {
    let ask = |question: &str| server.psql(&[question]).map(|answer| answer.trim().to_owned());
    let name = table.name();
    let bytes: u64 = ask(&format!("select pg_relation_size('{name}')"))?.parse()?;
    let first = cluster.data().join(ask(&format!("select pg_relation_filepath('{name}')"))?);
    let mut all = of_relation(&first)?;
    let is_main =
        |path: &&PathBuf| !path.file_name().is_some_and(|n| n.to_string_lossy().contains('_'));
    let heap = all.iter().filter(is_main).cloned().collect();
    if table == Table::Bigtable {
        let index = ask(&format!("select pg_relation_filepath('{INDEX}')"))?;
        all.extend(of_relation(&cluster.data().join(index))?);
    }
    Ok(Files { rows, blocks: bytes / BLOCK_BYTES, heap, all })
}

/// The segments and forks of the relation whose first segment this is, in the order of their names.
fn of_relation(first: &Path) -> Result<Vec<PathBuf>> {
    let (directory, name) = (first.parent().context("no directory")?, first.file_name());
    let name = name.context("no file name")?.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let own = path.file_name().map(|own| own.to_string_lossy().into_owned());
        let rest = own.as_deref().and_then(|own| own.strip_prefix(&name)).map(str::to_owned);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_'])) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The limit of the devices of a place, and its words.
fn limit(place: ClusterKind, options: &Options) -> (ReadLimit, String) {
    if place == ClusterKind::Mirror {
        let rate = options.mirror_mib_s;
        return (ReadLimit::BytesPerSecond(rate * MIB), format!("{rate} MiB/s"));
    }
    let reads = options.device_reads_s;
    (ReadLimit::ReadsPerSecond(reads), format!("{reads} reads/s"))
}

/// A device for a copy of the cluster, and the group in which it is slow.
fn device(
    place: ClusterKind,
    cluster: &Cluster,
    options: &Options,
) -> Result<(Volume, ControlGroup), Unavailable> {
    let tables = options.rows * T_ROW_BYTES + options.bigtable_rows * BIGTABLE_ROW_BYTES;
    let bytes = tables * 5 / 4 + 1024 * MIB;
    let kind = if place == ClusterKind::Mirror { FileSystem::BtrfsRaid1 } else { FileSystem::Xfs };
    let volume =
        Volume::create(kind, cluster.directory.parent().unwrap_or(&cluster.directory), bytes)?;
    let mut group = ControlGroup::create()?;
    for device in volume.devices() {
        group.limit_reads(device, limit(place, options).0)?;
    }
    Ok((volume, group))
}
