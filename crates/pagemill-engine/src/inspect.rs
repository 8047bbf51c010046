//! Looking at single things: the control file, a relation, one block.
//!
//! What is damaged is what one wants to look at, so nothing here stops at a fault: every field is
//! given as it lies on disk, and beside it what is wrong with it. Nothing is believed that would
//! lead out of the page.
//!
//! Source: `src/include/storage/bufpage.h`, `src/include/access/htup_details.h`,
//! PostgreSQL 14 to 18.

use std::path::{Path, PathBuf};

use pagemill_cluster::directory_state::{read_control, read_version};
use pagemill_cluster::page_check::PageCheck;
use pagemill_cluster::recovery::PageHistory;
use pagemill_cluster::visibility::{deleter_committed, inserter_committed};
use pagemill_cluster::{
    Cluster, ClusterLog, Column, Database, Error as ClusterError, Persistence, Relation,
    RelationKind, UnknownTypes, ValueCatalog,
};
use pagemill_format::checksum::page_checksum;
use pagemill_format::control::ControlFile;
use pagemill_format::page::{LinePointer, LinePointerState, Page, PageHeader};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{
    BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, ErrorKind as FormatErrorKind, Fork,
    Oid,
};
use pagemill_io::{ForkFiles, Storage};
use pagemill_types::output::{Lookups, NameKind};

use crate::encoding::readable_name;
use crate::error::{Error, Result};
use crate::table::tail_by_sizes_and_maps;

/// Access methods whose pages have line pointers behind their header: heap, btree, gist, spgist.
const WITH_LINE_POINTERS: [Oid; 4] = [Oid(2), Oid(403), Oid(783), Oid(4000)];

/// The control file of a data directory, whatever state it tells of, running servers included.
///
/// # Errors
/// When the directory is none, or the file is damaged or of an unknown kind.
pub fn control_file(storage: &Storage, path: &Path) -> Result<ControlFile> {
    let version = read_version(storage, path)?;
    Ok(read_control(storage, path, Some(version))?)
}

/// The files of one fork.
#[derive(Debug, Clone)]
pub struct ForkReport {
    /// Which fork.
    pub fork: Fork,
    /// How many block numbers it has.
    pub blocks: u32,
    /// Path and bytes of each segment file; no bytes where it is missing.
    pub segments: Vec<(PathBuf, Option<u64>)>,
    /// What is wrong with the files.
    pub damage: Vec<String>,
}

/// The forks a relation has.
///
/// # Errors
/// When directories or sizes cannot be read.
pub fn forks(database: &Database, relation: &Relation) -> Result<Vec<ForkReport>> {
    let mut found = Vec::new();
    for fork in Fork::ALL {
        let Some(files) = database.cluster().fork(&relation.base, fork)? else {
            found.extend(is_lost(relation, fork).then(|| lost_fork(relation, fork)));
            continue;
        };
        let tail = tail_by_sizes_and_maps(database, &relation.class, &files)?;
        let (path, _) = files.locate(BlockNumber(files.blocks()));
        let mut damage: Vec<_> = files.damage().iter().map(ToString::to_string).collect();
        damage.extend(tail.map(|tail| format!("{}: {tail}", path.display())));
        let segments = files.segments().collect();
        found.push(ForkReport { fork, blocks: files.blocks(), segments, damage });
    }
    Ok(found)
}

/// True for a fork that a relation must have. The files of temporary tables have names of their own.
fn is_lost(relation: &Relation, fork: Fork) -> bool {
    let class = &relation.class;
    fork == Fork::Main && class.kind.has_files() && class.persistence != Persistence::Temporary
}

fn lost_fork(relation: &Relation, fork: Fork) -> ForkReport {
    let path = relation.base.clone();
    let damage = vec![format!("{}: the file is missing", path.display())];
    ForkReport { fork, blocks: 0, segments: vec![(path, None)], damage }
}

/// A column, with the name of its type.
#[derive(Debug, Clone)]
pub struct ColumnReport {
    /// The column.
    pub column: Column,
    /// Its name, to be read.
    pub name: String,
    /// Its type as `format_type` would name it; empty once the column is dropped.
    pub type_name: String,
}

/// The columns of a relation, dropped ones included, in the order of tuples.
///
/// # Errors
/// When the catalogs cannot be read.
pub fn columns(database: &Database, relation: &Relation) -> Result<Vec<ColumnReport>> {
    let mut lookups = ValueCatalog::new(database, UnknownTypes::Hex)?.lookups();
    let encoding = database.row().encoding;
    let mut found = Vec::new();
    for column in &relation.columns {
        let mut name = Vec::new();
        if !column.dropped {
            lookups.write_name(NameKind::Type, column.type_oid, &mut name).map_err(name_error)?;
        }
        found.push(ColumnReport {
            name: readable_name(encoding, &column.name),
            type_name: readable_name(encoding, &name),
            column: column.clone(),
        });
    }
    Ok(found)
}

fn name_error(error: FormatError) -> Error {
    match error.into_kind() {
        FormatErrorKind::Lookup(source) => match source.downcast::<ClusterError>() {
            Ok(error) => Error::Cluster(*error),
            Err(source) => Error::Value(FormatError::of_kind(FormatErrorKind::Lookup(source))),
        },
        own => Error::Value(FormatError::of_kind(own)),
    }
}

/// One block, taken apart.
#[derive(Debug, Clone)]
pub struct BlockReport {
    /// The segment file it is in.
    pub path: PathBuf,
    /// Where in that file it starts, in bytes.
    pub offset: u64,
    /// Allocated and never initialised.
    pub is_new: bool,
    /// The header's fields, believed or not.
    pub header: PageHeader,
    /// What is wrong with the header.
    pub header_fault: Option<String>,
    /// The checksum.
    pub checksum: ChecksumReport,
    /// The line pointers, where the page is of a kind that has them.
    pub line_pointers: Vec<LinePointerReport>,
    /// How it came to be, where it is as after redo.
    pub history: Option<PageHistory>,
}

impl BlockReport {
    /// True when anything on the block is damaged.
    pub fn is_damaged(&self) -> bool {
        let tuple_fault = |lp: &LinePointerReport| {
            let unknown = |t: &TupleReport| matches!(t.fate, TupleFate::Unknown(_));
            lp.fault.is_some() || lp.tuple.as_ref().is_some_and(unknown)
        };
        self.header_fault.is_some()
            || self.checksum.verdict == ChecksumVerdict::Wrong
            || self.line_pointers.iter().any(tuple_fault)
    }
}

/// The checksum a page carries, and the one it should carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksumReport {
    /// On the page.
    pub stored: u16,
    /// Computed from the page and its block number.
    pub computed: u16,
    /// What to make of both.
    pub verdict: ChecksumVerdict,
}

/// What to make of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumVerdict {
    /// Both are the same.
    Right,
    /// They differ: the page, or its place, is not what was written.
    Wrong,
    /// The cluster has no checksums, or they are not to be verified.
    NotVerified,
    /// A new page carries none.
    NewPage,
}

/// One line pointer.
#[derive(Debug, Clone)]
pub struct LinePointerReport {
    /// Its number, from 1.
    pub number: u16,
    /// Its fields.
    pub pointer: LinePointer,
    /// What is wrong with it, or with the tuple's header.
    pub fault: Option<String>,
    /// The tuple, where it leads to one of a table.
    pub tuple: Option<TupleReport>,
}

/// The header of a tuple.
#[derive(Debug, Clone)]
pub struct TupleReport {
    /// Inserting transaction.
    pub xmin: u32,
    /// Deleting or locking transaction, or multixact.
    pub xmax: u32,
    /// Command id.
    pub cid: u32,
    /// Where the next version is, as `(block,line pointer)`.
    pub ctid: String,
    /// `t_infomask`.
    pub infomask: u16,
    /// `t_infomask2`.
    pub infomask2: u16,
    /// Bytes of the header.
    pub hoff: usize,
    /// Attributes it has.
    pub attributes: usize,
    /// Which of them are there (`1`) and which are null (`0`); `None` when none is null.
    pub null_bitmap: Option<String>,
    /// Whether a server's first query would see it.
    pub fate: TupleFate,
}

/// Whether a server's first query would see a tuple, and if not, why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TupleFate {
    /// It would.
    Visible,
    /// Its inserter did not commit.
    NeverInserted,
    /// It was deleted or replaced.
    Deleted,
    /// The status of a transaction cannot be read.
    Unknown(String),
}

/// Reads one block of a fork and takes it apart.
///
/// # Errors
/// When there is no such fork or block, or it cannot be read.
pub fn block(
    database: &Database,
    relation: &Relation,
    fork: Fork,
    block: BlockNumber,
) -> Result<BlockReport> {
    let cluster = database.cluster();
    let not_found = |what| ClusterError::NotFound { what, near: Vec::new() };
    let name = relation.display_name();
    let files = cluster
        .fork(&relation.base, fork)?
        .ok_or_else(|| not_found(format!("fork {fork} of {name}")))?;
    if block.0 >= files.blocks() && files.damage().is_empty() {
        let what =
            format!("block {block} of fork {fork} of {name}, which has {} blocks,", files.blocks());
        return Err(not_found(what).into());
    }
    let mut bytes: Box<BlockBytes> = Box::new([0; BLOCK_SIZE]);
    files.read_block(block, &mut bytes).map_err(ClusterError::from)?;
    retry_torn_page(cluster, &files, block, &mut bytes)?;
    let has_tuples = fork == Fork::Main && relation.class.kind.has_rows();
    let sequence = relation.class.kind == RelationKind::Sequence;
    let has_line_pointers = fork == Fork::Main
        && (sequence || WITH_LINE_POINTERS.contains(&relation.class.access_method));
    let (path, offset) = files.locate(block);
    let page = Page::new(&bytes);
    let mut log = ClusterLog::new(cluster.clone());
    let numbers = 1..=if has_line_pointers { page.line_pointer_count() } else { 0 };
    let tuples_of = has_tuples.then_some(&mut log);
    Ok(BlockReport {
        path,
        offset,
        is_new: page.is_new(),
        header: page.header(),
        header_fault: page.check_header().err().map(|error| error.to_string()),
        checksum: checksum(cluster, &bytes, block),
        line_pointers: line_pointers(page, numbers, tuples_of),
        history: cluster.page_history(&files, block)?,
    })
}

/// A page caught half written is read again; one that stays damaged is shown as it is.
fn retry_torn_page(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &mut Box<BlockBytes>,
) -> Result<()> {
    let mut again = None;
    match (PageCheck { cluster, files }).check_or_read_again(block, bytes, None, &mut again) {
        Ok(_) | Err(ClusterError::Damage(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if let Some(again) = again {
        *bytes = again;
    }
    Ok(())
}

fn checksum(cluster: &Cluster, bytes: &BlockBytes, block: BlockNumber) -> ChecksumReport {
    let page = Page::new(bytes);
    let (stored, computed) = (page.header().checksum, page_checksum(bytes, block));
    let verdict = match stored == computed {
        _ if page.is_new() => ChecksumVerdict::NewPage,
        _ if !cluster.verify_checksums() => ChecksumVerdict::NotVerified,
        true => ChecksumVerdict::Right,
        false => ChecksumVerdict::Wrong,
    };
    ChecksumReport { stored, computed, verdict }
}

fn line_pointers(
    page: Page<'_>,
    numbers: std::ops::RangeInclusive<u16>,
    mut log: Option<&mut ClusterLog>,
) -> Vec<LinePointerReport> {
    let mut found = Vec::new();
    for number in numbers {
        let Some(pointer) = page.line_pointer(number) else { break };
        let mut report = LinePointerReport { number, pointer, fault: None, tuple: None };
        if pointer.state() == LinePointerState::Normal {
            let tuple =
                page.item(pointer).map(|item| log.is_some().then(|| HeapTuple::parse(item)));
            match (tuple, &mut log) {
                (Ok(Some(Ok(tuple))), Some(log)) => {
                    report.tuple = Some(tuple_report(page, tuple, log));
                }
                (Ok(Some(Err(error))) | Err(error), _) => report.fault = Some(error.to_string()),
                (Ok(_), _) => {}
            }
        }
        found.push(report);
    }
    found
}

fn tuple_report(page: Page<'_>, tuple: HeapTuple<'_>, log: &mut ClusterLog) -> TupleReport {
    TupleReport {
        xmin: tuple.xmin().0,
        xmax: tuple.xmax(),
        cid: tuple.cid(),
        ctid: tuple.ctid().to_string(),
        infomask: tuple.infomask(),
        infomask2: tuple.infomask2(),
        hoff: tuple.hoff(),
        attributes: tuple.attribute_count(),
        null_bitmap: null_bitmap(tuple),
        fate: fate(page, tuple, log),
    }
}

fn null_bitmap(tuple: HeapTuple<'_>) -> Option<String> {
    let bits = tuple.data().nulls?;
    let bit = |n: usize| bits.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0);
    Some((0..tuple.attribute_count()).map(|n| if bit(n) { '1' } else { '0' }).collect())
}

fn fate(page: Page<'_>, tuple: HeapTuple<'_>, log: &mut ClusterLog) -> TupleFate {
    if page.is_all_visible() {
        return TupleFate::Visible;
    }
    let committed = inserter_committed(tuple, log);
    match committed.and_then(|inserted| Ok((inserted, inserted && deleter_committed(tuple, log)?)))
    {
        Ok((false, _)) => TupleFate::NeverInserted,
        Ok((true, true)) => TupleFate::Deleted,
        Ok((true, false)) => TupleFate::Visible,
        Err(error) => TupleFate::Unknown(error.to_string()),
    }
}

/// The names of flag bits, lowest bit first.
type FlagNames = [(u16, &'static str)];

const INFOMASK: [(u16, &str); 14] = [
    (0x0001, "HEAP_HASNULL"),
    (0x0002, "HEAP_HASVARWIDTH"),
    (0x0004, "HEAP_HASEXTERNAL"),
    (0x0008, "HEAP_HASOID_OLD"),
    (0x0010, "HEAP_XMAX_KEYSHR_LOCK"),
    (0x0020, "HEAP_COMBOCID"),
    (0x0040, "HEAP_XMAX_EXCL_LOCK"),
    (0x0080, "HEAP_XMAX_LOCK_ONLY"),
    (0x0100, "HEAP_XMIN_COMMITTED"),
    (0x0200, "HEAP_XMIN_INVALID"),
    (0x0400, "HEAP_XMAX_COMMITTED"),
    (0x0800, "HEAP_XMAX_INVALID"),
    (0x1000, "HEAP_XMAX_IS_MULTI"),
    (0x2000, "HEAP_UPDATED"),
];

const INFOMASK2: [(u16, &str); 3] =
    [(0x2000, "HEAP_KEYS_UPDATED"), (0x4000, "HEAP_HOT_UPDATED"), (0x8000, "HEAP_ONLY_TUPLE")];

const PAGE_FLAGS: [(u16, &str); 3] =
    [(0x0001, "PD_HAS_FREE_LINES"), (0x0002, "PD_PAGE_FULL"), (0x0004, "PD_ALL_VISIBLE")];

impl TupleReport {
    /// The flags of `t_infomask` and `t_infomask2` by PostgreSQL's names. Where two bits have a
    /// meaning of their own together, as frozen has, that is what is named.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut names = names_of(&INFOMASK, self.infomask);
        merge(&mut names, ["HEAP_XMIN_COMMITTED", "HEAP_XMIN_INVALID"], "HEAP_XMIN_FROZEN");
        merge(&mut names, ["HEAP_XMAX_KEYSHR_LOCK", "HEAP_XMAX_EXCL_LOCK"], "HEAP_XMAX_SHR_LOCK");
        match self.infomask & 0xC000 {
            0x4000 => names.push("HEAP_MOVED_OFF"),
            0x8000 => names.push("HEAP_MOVED_IN"),
            0xC000 => names.push("HEAP_MOVED"),
            _ => {}
        }
        names.extend(names_of(&INFOMASK2, self.infomask2));
        names
    }
}

/// The flags of a page header by PostgreSQL's names.
pub fn page_flags(header: &PageHeader) -> Vec<&'static str> {
    names_of(&PAGE_FLAGS, header.flags)
}

fn names_of(names: &FlagNames, bits: u16) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}

/// Puts one name in the place of two that stand together.
fn merge(names: &mut Vec<&'static str>, both: [&str; 2], merged: &'static str) {
    if both.iter().all(|name| names.contains(name)) {
        names.retain(|name| *name != both[1]);
        if let Some(first) = names.iter_mut().find(|name| **name == both[0]) {
            *first = merged;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(infomask: u16, infomask2: u16) -> TupleReport {
        TupleReport {
            xmin: 3,
            xmax: 0,
            cid: 0,
            ctid: "(0,1)".into(),
            infomask,
            infomask2,
            hoff: 24,
            attributes: 1,
            null_bitmap: None,
            fate: TupleFate::Visible,
        }
    }

    #[test]
    fn flags_go_by_postgresqls_names() {
        assert_eq!(
            tuple(0x0902, 0).flags(),
            ["HEAP_HASVARWIDTH", "HEAP_XMIN_COMMITTED", "HEAP_XMAX_INVALID"]
        );
        assert_eq!(tuple(0x2000, 0x8003).flags(), ["HEAP_UPDATED", "HEAP_ONLY_TUPLE"]);
    }

    #[test]
    fn two_bits_with_one_meaning_have_one_name() {
        assert_eq!(tuple(0x0300, 0).flags(), ["HEAP_XMIN_FROZEN"]);
        assert_eq!(tuple(0x0050, 0).flags(), ["HEAP_XMAX_SHR_LOCK"]);
        assert_eq!(tuple(0xC000, 0).flags(), ["HEAP_MOVED"]);
        assert_eq!(tuple(0x4000, 0).flags(), ["HEAP_MOVED_OFF"]);
    }

    #[test]
    fn any_bytes_give_line_pointers_and_faults_but_no_panic() {
        use proptest::prelude::*;
        proptest!(|(seed in proptest::collection::vec(any::<u8>(), 64), fill: u8)| {
            let mut bytes = [fill; BLOCK_SIZE];
            bytes[..64].copy_from_slice(&seed);
            let page = Page::new(&bytes);
            let found = line_pointers(page, 1..=page.line_pointer_count(), None);
            prop_assert_eq!(found.len(), usize::from(page.line_pointer_count()));
        });
    }
}
