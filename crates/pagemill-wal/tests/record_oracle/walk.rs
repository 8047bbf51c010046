//! The walk over the WAL of a server that checked itself: each record is redone, and what comes out is compared
//! with the server's own image of the page.
//!
//! With `wal_consistency_checking` and without `full_page_writes` nearly every record brings both: what redo
//! needs, and the page as the server had it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use pagemill_format::control::ControlFile;
use pagemill_format::page::Page;
use pagemill_format::page_builder::set_lsn;
use pagemill_format::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};
use pagemill_format::wal::{
    BlockImage, BlockReference, Record, ResourceManager, StorageFile, Truncation,
};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_redo::{Effect, RedoSite, effect, is_redone, redo};
use pagemill_testkit::page_mask::{self, PageKind};
use pagemill_wal::{WalDirectory, WalReader, WalRecord};

use super::final_pages::final_pages;
use super::pages::{Pages, States};

/// As many differences are told as help to find the fault.
const TOLD: usize = 8;

/// `GistBuildLSN`: what pages have as LSN whose index is being built.
const GIST_BUILD_LSN: Lsn = Lsn(1);

/// What the walk saw.
#[derive(Default)]
pub(crate) struct Report {
    /// Blocks compared with the server's image, by the name of the record.
    pub(crate) compared: BTreeMap<String, usize>,
    /// The same by the number of the block reference, without counting.
    pub(crate) references: BTreeSet<(String, u8)>,
    /// Records with a block that was compared, and all of their references.
    pub(crate) forms: BTreeSet<(String, Vec<u8>)>,
    /// Blocks whose image was taken instead, since nothing is known of the manager.
    pub(crate) not_redone: BTreeMap<String, usize>,
    /// Images that were restored.
    pub(crate) images: usize,
    /// Pages compared with the server's files once all was redone.
    pub(crate) at_the_end: usize,
    /// What differed, or could not be redone.
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compared: usize = self.compared.values().sum();
        let (images, faults) = (self.images, self.faults.len());
        let at_the_end = self.at_the_end;
        writeln!(
            f,
            "{compared} blocks compared, {images} images, {at_the_end} pages at the end, {faults} faults"
        )?;
        writeln!(f, "compared: {:?}\nnot redone: {:?}", self.compared, self.not_redone)?;
        self.faults.iter().take(TOLD).try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

/// Walks the WAL in `after`, from where the copy in `before` was stopped.
pub(crate) fn walk(before: &Path, after: &Path) -> Result<Report> {
    let control = |data: &Path| -> Result<ControlFile> {
        Ok(ControlFile::parse(&std::fs::read(data.join("global/pg_control"))?, None)?)
    };
    let start = control(before)?.checkpoint_location;
    let control = control(after)?;
    let directory = WalDirectory::of_cluster(after, &control)?;
    let mut walk = Walk {
        pages: Pages::new(before),
        report: Report::default(),
        version: directory.version,
        hints_logged: control.has_data_checksums() || control.settings.wal_log_hints,
    };
    let mut reader = WalReader::at(&Storage::real(), &directory, start);
    let mut last = start;
    while let Some(found) = reader.next_record()? {
        walk.record(&found).with_context(|| format!("the record at {}", found.lsn))?;
        last = found.lsn;
    }
    let wanted = control.checkpoint_location;
    anyhow::ensure!(last == wanted, "WAL ends at {last}, not with the checkpoint at {wanted}");
    walk.report.at_the_end = final_pages(&walk.pages, after, &mut walk.report.faults)?;
    Ok(walk.report)
}

struct Walk {
    pages: Pages,
    report: Report,
    version: PgVersion,
    hints_logged: bool,
}

impl Walk {
    fn record(&mut self, found: &WalRecord<'_>) -> Result<()> {
        let record = found.parse()?;
        self.files(&record)?;
        for block in &record.blocks {
            let key = (block.locator, block.fork, block.block);
            let mut states = self.pages.take(key)?;
            self.block(found, &record, block, &mut states);
            self.pages.put(key, states);
        }
        Ok(())
    }

    /// Files made and cut. One that is made is empty, whatever bore its name in the copy.
    fn files(&mut self, record: &Record<'_>) -> Result<()> {
        let (manager, kind) = (record.header.resource_manager, record.header.kind());
        if manager != ResourceManager::STORAGE {
            return Ok(());
        }
        if kind == ResourceManager::SMGR_CREATE {
            let file = StorageFile::parse(record.main_data)?;
            self.pages.truncate(file.locator, file.fork, 0);
        } else if kind == ResourceManager::SMGR_TRUNCATE {
            let cut = Truncation::parse(record.main_data)?;
            self.pages.truncate(cut.locator, Fork::Main, cut.blocks.0);
        }
        Ok(())
    }

    fn block(
        &mut self,
        found: &WalRecord<'_>,
        record: &Record<'_>,
        block: &BlockReference<'_>,
        states: &mut States,
    ) {
        let header = &record.header;
        let manager = header.resource_manager;
        if manager != ResourceManager::XLOG {
            states.manager = Some(manager);
        }
        let name = manager.record_name(header.info, self.version).unwrap_or("?");
        let name = format!("{} {name}", manager.name());
        let effect = effect(&record.header, &block.touch());
        if effect == Effect::Nothing {
            // The server had its page moved on for a hint, of which recovery makes nothing.
            set_lsn(&mut states.ours, found.end);
            set_lsn(&mut states.theirs, found.end);
            return;
        }
        if !is_redone(manager) && effect != Effect::Image {
            *self.report.not_redone.entry(name).or_default() += 1;
            if let Some(image) = block.image {
                (*states.ours, *states.theirs) = (restored(&image), restored(&image));
            }
            return;
        }
        let (reference, version, hints_logged) = (block.id, self.version, self.hints_logged);
        let (start, end) = (found.lsn, found.end);
        let site = RedoSite { record, start, end, reference, version, hints_logged };
        let lsn_before = Page::new(&states.ours).header().lsn;
        let faults_before = self.report.faults.len();
        let results = [redo(&mut states.ours, &site), redo(&mut states.theirs, &site)];
        let at =
            format!("{name} at {start}, block {} of {} {}", block.block, block.locator, block.fork);
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            self.report.faults.push(format!("{at}: {error}"));
        }
        if effect == Effect::Image {
            self.report.images += 1;
            let has_hole = block.image.is_some_and(|image| image.hole_length > 0);
            states.lost_bits |= block.fork == Fork::Vm && has_hole;
            return;
        }
        let Some(image) = block.image else { return };
        let server = restored(&image);
        let told_before = Page::new(&server).header().lsn;
        // Bits of the visibility map that are cleared without a reference are not redone here, so that another
        // record may find nothing to do there.
        let counts = effect == Effect::Delta && block.fork == Fork::Main;
        // A GiST index that is built by sorting keeps its pages' LSN from before they were logged.
        let is_known = told_before > GIST_BUILD_LSN;
        if counts && is_known && told_before != lsn_before {
            self.report
                .faults
                .push(format!("{at}: the page had LSN {told_before}, here {lsn_before}"));
        }
        for (whose, page) in [("our own page", &states.ours), ("the server's page", &states.theirs)]
        {
            if let Some(what) = difference(page, &server, manager, block.block) {
                self.report.faults.push(format!("{at}, redone on {whose}: {what}"));
            }
            if clears_named_bits(block, &image, &name) && self.other_bits(block, page, &server) {
                self.report.faults.push(format!("{at}, redone on {whose}: other bits are set"));
            }
        }
        self.report.references.insert((name.clone(), block.id));
        let references = record.blocks.iter().map(|block| block.id).collect();
        self.report.forms.insert((name.clone(), references));
        *self.report.compared.entry(name).or_default() += 1;
        // The server's image has the LSN that the page had before the record.
        states.theirs[8..].copy_from_slice(&server[8..]);
        if self.report.faults.len() > faults_before {
            // Told once, not with every later record of the page.
            set_lsn(&mut states.theirs, end);
            states.ours = states.theirs.clone();
        }
    }

    /// Whether bits of blocks that were never cut off differ.
    fn other_bits(&self, map: &BlockReference<'_>, ours: &BlockBytes, theirs: &BlockBytes) -> bool {
        let first = map.block.0 * BLOCKS_PER_PAGE;
        (first..first + BLOCKS_PER_PAGE).any(|heap| {
            let position = VisibilityPosition::of(BlockNumber(heap));
            position.bits(ours) != position.bits(theirs)
                && !self.pages.is_cut((map.locator, Fork::Main, BlockNumber(heap)))
        })
    }
}

/// The record clears bits of a page of the map that it names, as 17.11, 18.6 and later do, and the image is whole: that
/// of a page with a hole has no bits. A server that does so once does so always, so that other bits are set here only of
/// blocks that were cut off, which it does not log.
fn clears_named_bits(block: &BlockReference<'_>, image: &BlockImage<'_>, name: &str) -> bool {
    block.fork == Fork::Vm && image.hole_length == 0 && name != "Heap2 VISIBLE"
}

fn restored(image: &BlockImage<'_>) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    image.restore(&mut page, &mut Vec::new()).expect("an image whose CRC was checked");
    page
}

/// The first byte that differs and counts.
pub(crate) fn difference(
    ours: &BlockBytes,
    theirs: &BlockBytes,
    manager: ResourceManager,
    block: BlockNumber,
) -> Option<String> {
    page_mask::difference(ours, theirs, kind_of(manager), block.0)
}

/// What this manager's pages are.
fn kind_of(manager: ResourceManager) -> PageKind {
    match manager {
        ResourceManager::HEAP | ResourceManager::HEAP2 => PageKind::Heap,
        ResourceManager::SEQUENCE => PageKind::Sequence,
        ResourceManager::BTREE => PageKind::Btree,
        ResourceManager::HASH => PageKind::Hash,
        ResourceManager::GIN => PageKind::Gin,
        ResourceManager::GIST => PageKind::Gist,
        ResourceManager::SPGIST => PageKind::SpGist,
        ResourceManager::BRIN => PageKind::Brin,
        _ => PageKind::Generic,
    }
}
