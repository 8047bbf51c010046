//! The page oracle: every page of a copy that a server recovered, against the same page of another copy, redone by
//! Pagemill as it is read.
//!
//! What counts are the main and init forks of all relations that are logged, block by block, whether pages are all-visible,
//! and their LSN, which tells of a record that was missed even where it left no other trace. Of a visibility map no
//! bit may be set that the server's has not: one that is lacking costs time, one too many costs rows. But where a database is
//! copied, the server logs the map's pages as if they had a hole, and its own recovery empties them; there the heap's
//! page tells. Relation maps are the same to the byte. Free space maps are nobody's business.
//!
//! Invariant: the server did nothing but recover ([`TestCluster::recover`]). The one backend that it becomes
//! for a moment looks into the shared catalogs, so these alone may be newer there.
//!
//! [`TestCluster::recover`]: pagemill_testkit::TestCluster::recover

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pagemill_cluster::recovery::plan::PlanOptions;
use pagemill_cluster::{Cluster, DirectoryState, OpenOptions, Recovery};
use pagemill_format::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, SEGMENT_BLOCKS};
use pagemill_io::Storage;
use pagemill_testkit::page_mask::{self, PageKind};

/// Shared catalogs.
const GLOBAL: &str = "global";
/// The relation map of a directory.
const MAP_FILE: &str = "pg_filenode.map";

const PAGE_HEADER_BYTES: usize = 24;

/// What was compared, and what differed.
#[derive(Debug, Default)]
pub struct PageReport {
    /// Pages of main and init forks.
    pub pages: u64,
    /// Of these, how many are not as they lie in the files.
    pub redone: u64,
    /// What differed.
    pub faults: Vec<String>,
}

/// Compares the directory `unclean`, read with its WAL, with `recovered`, its copy that a server recovered.
///
/// # Errors
/// When one of them cannot be read.
pub fn compare_pages(unclean: &Path, recovered: &Path, wanted: &PlanOptions) -> Result<PageReport> {
    let options = OpenOptions::default();
    let state = DirectoryState::read(&Storage::real(), unclean)?;
    let (recovery, redone) = Recovery::by_wal(&state, &options, wanted)?;
    let cluster = Cluster::open_recovered(state, recovery, options);
    let (storage, end) = (cluster.storage().clone(), redone.end.lsn);
    let mut oracle = PageOracle { unclean, recovered, storage, end, report: PageReport::default() };
    for directory in relation_directories(unclean)?.union(&relation_directories(recovered)?) {
        oracle.directory(directory).with_context(|| directory.display().to_string())?;
    }
    Ok(oracle.report)
}

/// Directories of relations, below the data directory.
fn relation_directories(data: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::from([PathBuf::from(GLOBAL)]);
    let below = |directory: &Path| -> Result<Vec<PathBuf>> {
        let names = fs::read_dir(data.join(directory))?;
        names.map(|entry| Ok(directory.join(entry?.file_name()))).collect()
    };
    found.extend(below(Path::new("base"))?);
    for tablespace in below(Path::new("pg_tblspc"))? {
        for version in below(&tablespace)? {
            found.extend(below(&version)?);
        }
    }
    Ok(found)
}

/// A segment of a fork, by the name of its file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    relation: u32,
    fork: Fork,
    number: u32,
}

impl Segment {
    /// Names of temporary relations are no names here.
    fn of(name: &str) -> Option<Self> {
        let (fork_name, number) = name.split_once('.').unwrap_or((name, "0"));
        let (relation, suffix) = fork_name.split_once('_').unwrap_or((fork_name, ""));
        let fork = match suffix {
            "" => Fork::Main,
            "vm" => Fork::Vm,
            "init" => Fork::Init,
            _ => return None,
        };
        Some(Self { relation: relation.parse().ok()?, fork, number: number.parse().ok()? })
    }
}

struct PageOracle<'a> {
    unclean: &'a Path,
    recovered: &'a Path,
    storage: Storage,
    /// Where redo ended.
    end: Lsn,
    report: PageReport,
}

impl PageOracle<'_> {
    fn directory(&mut self, directory: &Path) -> Result<()> {
        let ours: BTreeSet<String> = match self.storage.read_dir(&self.unclean.join(directory)) {
            Ok(entries) => entries.iter().map(|e| e.name.to_string_lossy().into_owned()).collect(),
            Err(error) if error.is_not_found() => BTreeSet::new(),
            Err(error) => return Err(error.into()),
        };
        let mut theirs = BTreeSet::new();
        if self.recovered.join(directory).exists() {
            for entry in fs::read_dir(self.recovered.join(directory))? {
                theirs.insert(entry?.file_name().to_string_lossy().into_owned());
            }
        }
        for name in ours.union(&theirs) {
            let Some(segment) = Segment::of(name) else { continue };
            let is_unlogged = theirs.contains(&format!("{}_init", segment.relation));
            if is_unlogged && segment.fork != Fork::Init {
                continue;
            }
            let at = directory.join(name);
            match (segment.fork, ours.contains(name), theirs.contains(name)) {
                (Fork::Vm, false, _) => {}
                (Fork::Vm, true, there) => self.map(&at, segment, there)?,
                (_, true, true) => self.segment(&at, segment)?,
                (_, here, _) => {
                    let whose = if here { "the server has no" } else { "no" };
                    self.fault(&at, &format!("{whose} such file"));
                }
            }
        }
        if theirs.contains(MAP_FILE) {
            let at = directory.join(MAP_FILE);
            if self.ours(&at)? != fs::read(self.recovered.join(&at))? {
                self.fault(&at, "the relation map differs");
            }
        }
        Ok(())
    }

    fn fault(&mut self, at: &Path, what: &str) {
        self.report.faults.push(format!("{}: {what}", at.display()));
    }

    fn ours(&self, at: &Path) -> Result<Vec<u8>> {
        Ok(self.storage.read_file(&self.unclean.join(at), u64::MAX)?)
    }

    fn segment(&mut self, at: &Path, segment: Segment) -> Result<()> {
        let ours = self.ours(at)?;
        let theirs = fs::read(self.recovered.join(at))?;
        let lying = fs::read(self.unclean.join(at)).unwrap_or_default();
        let (here, _) = ours.as_chunks::<BLOCK_SIZE>();
        let (there, _) = theirs.as_chunks::<BLOCK_SIZE>();
        if here.len() > there.len() {
            let (here, there) = (here.len(), there.len());
            self.fault(at, &format!("{here} blocks, the server has {there}"));
        }
        for (number, theirs) in there.iter().enumerate() {
            let block = segment.number * SEGMENT_BLOCKS + number as u32;
            let fault = match here.get(number) {
                Some(ours) => self.page_fault(at, block, ours, theirs),
                None => is_new_or(theirs, "the server has a page behind the end"),
            };
            if let Some(what) = fault {
                self.fault(at, &format!("block {block}: {what}"));
            }
            let lies = lying.as_chunks::<BLOCK_SIZE>().0.get(number);
            self.report.redone += u64::from(here.get(number) != lies);
        }
        self.report.pages += there.len() as u64;
        Ok(())
    }

    fn page_fault(
        &self,
        at: &Path,
        block: u32,
        ours: &BlockBytes,
        theirs: &BlockBytes,
    ) -> Option<String> {
        if ours == theirs {
            return None;
        }
        let (here, there) = (lsn(ours), lsn(theirs));
        let is_later = at.starts_with(GLOBAL) && there > self.end;
        if here != there && !is_later {
            return Some(format!("its LSN is {here}, on the server {there}"));
        }
        let kind = PageKind::of(theirs);
        let all_visible = page_mask::is_all_visible;
        if kind == PageKind::Heap && all_visible(ours) != all_visible(theirs) {
            let here = all_visible(ours);
            return Some(format!("all-visible is {here}, the server has {}", !here));
        }
        let what = page_mask::difference(ours, theirs, kind, block)?;
        Some(format!("({kind:?}, LSN {here}) {what}"))
    }

    /// Bits that are set here and not there.
    fn map(&mut self, at: &Path, segment: Segment, is_there: bool) -> Result<()> {
        let ours = self.ours(at)?;
        let theirs = if is_there { fs::read(self.recovered.join(at))? } else { Vec::new() };
        let (theirs, _) = theirs.as_chunks::<BLOCK_SIZE>();
        let heap_name = format!("{}", segment.relation);
        let heap = fs::read(self.recovered.join(at).with_file_name(heap_name)).unwrap_or_default();
        let (heap, _) = heap.as_chunks::<BLOCK_SIZE>();
        for (number, page) in ours.as_chunks::<BLOCK_SIZE>().0.iter().enumerate() {
            let other = theirs.get(number).copied().unwrap_or([0; BLOCK_SIZE]);
            let is_emptied = other[PAGE_HEADER_BYTES..].iter().all(|byte| *byte == 0);
            let first = (segment.number * SEGMENT_BLOCKS + number as u32) * BLOCKS_PER_PAGE;
            for block in first..first + BLOCKS_PER_PAGE {
                let position = VisibilityPosition::of(BlockNumber(block));
                let (here, there) = (position.bits(page), position.bits(&other));
                let is_excused =
                    is_emptied && heap.get(block as usize).is_some_and(page_mask::is_all_visible);
                let is_too_many = here.all_visible() && !there.all_visible()
                    || here.all_frozen() && !there.all_frozen();
                if is_too_many && !is_excused {
                    let what = format!("block {block} is {here:?}, the server has {there:?}");
                    self.fault(at, &what);
                }
            }
        }
        Ok(())
    }
}

fn is_new_or(page: &BlockBytes, otherwise: &str) -> Option<String> {
    page.iter().any(|byte| *byte != 0).then(|| otherwise.to_owned())
}

fn lsn(page: &BlockBytes) -> Lsn {
    pagemill_format::page::Page::new(page).header().lsn
}
