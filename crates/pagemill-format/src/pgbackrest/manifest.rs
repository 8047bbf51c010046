//! [`Manifest`]: the files of one backup, their sizes, and where in the repository each of them lies.
//!
//! A file lies in the directory of the backup that copied it, which is this one or the one it refers to: alone under its own name,
//! or within a bundle. It is stored whole, or by blocks ([`BlockMap`](super::BlockMap)), where its map is the last of what is stored.
//! What is empty is not always stored at all.
//!
//! Invariants: no name leads out of the backup; each file refers to a backup that is in the list of references.
//!
//! Source: `manifestLoadCallback` in `src/info/manifest/serialize.c.inc`, `backupFileRepoPath` in `src/command/backup/common.c`,
//! `restoreJobCallback` in `src/command/restore/process.c.inc`, pgBackRest 2.59; 2.45 has the same keys.

use serde::Deserialize;

use super::cipher::Passphrase;
use super::info_file::{Entry, InfoFile};
use super::stanza_info::{BackupKind, label};
use crate::error::Result;

/// Sizes of blocks are multiples of this (`BLOCK_INCR_SIZE_FACTOR`).
const BLOCK_FACTOR: u64 = 8192;
/// Bytes of a block's checksum where nothing is said (`BLOCK_INCR_CHECKSUM_SIZE_MIN`), and at most.
const CHECKSUM_BYTES: (u64, u64) = (6, 16);
/// Blocks are far smaller.
const MOST_BLOCK_BYTES: u64 = 1 << 30;

/// `backup.manifest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The backup's label.
    pub label: String,
    /// What it has of its own.
    pub kind: BackupKind,
    /// How its files are compressed.
    pub stored_by: StoredBy,
    /// Streams in bundles have no header of gzip (`backup-bundle-raw`).
    pub has_raw_bundles: bool,
    /// The backups that files lie in, itself among them.
    pub references: Vec<String>,
    /// The files, by names that begin with `pg_data/` or `pg_tblspc/`.
    pub files: Vec<ManifestFile>,
    /// The directories, named alike.
    pub directories: Vec<String>,
    /// What the files are encrypted by.
    pub passphrase: Option<Passphrase>,
}

/// How files are compressed: what pgBackRest calls `compress-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredBy {
    /// Not at all.
    None,
    /// gzip.
    Gz,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zst,
    /// bzip2.
    Bz2,
}

impl StoredBy {
    /// What names of files that are stored alone end with.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gz => ".gz",
            Self::Lz4 => ".lz4",
            Self::Zst => ".zst",
            Self::Bz2 => ".bz2",
        }
    }
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Its name in the backup.
    pub name: String,
    /// Bytes of its contents.
    pub len: u64,
    /// Bytes that are stored of it.
    pub stored_len: u64,
    /// Which of the references it lies in.
    pub reference: usize,
    /// SHA-1 of its contents, in digits, if it is known.
    pub checksum: Option<String>,
    /// The bundle it lies in, and where; `None` for a file of its own.
    pub bundle: Option<(u64, u64)>,
    /// It is stored by blocks.
    pub blocks: Option<BlockIncrement>,
}

/// How a file is stored by blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockIncrement {
    /// Bytes of a block.
    pub block_size: u64,
    /// Bytes of a block's checksum.
    pub checksum_size: usize,
    /// Bytes of the map.
    pub map_len: u64,
}

impl Manifest {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt or unsupported, as any file of a repository can be; names that lead out of the backup.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = InfoFile::parse("backup.manifest", bytes)?;
        let own: String = file.required("backup", "backup-label")?;
        let listed: Option<String> = file.value("backup", "backup-reference")?;
        let mut manifest = Self {
            label: own.clone(),
            kind: file.required("backup", "backup-type")?,
            stored_by: stored_by(&file)?,
            has_raw_bundles: file.value("backup", "backup-bundle-raw")?.unwrap_or(false),
            references: listed
                .map_or_else(Vec::new, |list| list.split(',').map(str::to_owned).collect()),
            files: Vec::new(),
            directories: Vec::new(),
            passphrase: file.passphrase()?,
        };
        let own = manifest.reference(own);
        for entry in file.entries() {
            match entry.section {
                "target:file" => {
                    let file = manifest.file(entry, own)?;
                    manifest.files.push(file);
                }
                "target:path" => manifest.directories.push(name(entry)?),
                "backup" if matches!(entry.key, "backup-label" | "backup-reference") => {
                    entry
                        .value::<String>()?
                        .split(',')
                        .try_for_each(|text| label(entry, text).map(drop))?;
                }
                _ => {}
            }
        }
        Ok(manifest)
    }

    /// The place of a backup in the list, at the end of which it is put if it is not there.
    fn reference(&mut self, of: String) -> usize {
        match self.references.iter().position(|known| *known == of) {
            Some(at) => at,
            None => {
                self.references.push(of);
                self.references.len() - 1
            }
        }
    }

    fn file(&mut self, entry: &Entry<'_>, own: usize) -> Result<ManifestFile> {
        let found: TargetFile = entry.value()?;
        let reference = match &found.reference {
            Some(reference) => {
                label(entry, reference)?;
                self.reference(reference.clone())
            }
            None => own,
        };
        // Without a map it is stored whole, whatever else is said.
        let map_len = found.map_len.filter(|len| *len > 0);
        let blocks = map_len.map(|map_len| found.increment(entry, map_len)).transpose()?;
        Ok(ManifestFile {
            name: name(entry)?,
            len: found.size,
            stored_len: found.stored_len.unwrap_or(found.size),
            reference,
            checksum: found.checksum,
            bundle: found.bundle.map(|number| (number, found.offset)),
            blocks,
        })
    }
}

/// The option of today, or the older one, which knew gzip alone.
fn stored_by(file: &InfoFile<'_>) -> Result<StoredBy> {
    let named: Option<String> = file.value("backup:option", "option-compress-type")?;
    match named.as_deref() {
        Some("none") => Ok(StoredBy::None),
        Some("gz") => Ok(StoredBy::Gz),
        Some("lz4") => Ok(StoredBy::Lz4),
        Some("zst") => Ok(StoredBy::Zst),
        Some("bz2") => Ok(StoredBy::Bz2),
        Some(other) => {
            let what = format!("compress-type {other}; none, gz, lz4, zst and bz2 are read");
            Err(crate::Error::unsupported("backup.manifest", what))
        }
        None => match file.required("backup:option", "option-compress")? {
            true => Ok(StoredBy::Gz),
            false => Ok(StoredBy::None),
        },
    }
}

/// A line of the files.
#[derive(Deserialize)]
struct TargetFile {
    #[serde(rename = "bi")]
    block_factor: Option<u64>,
    #[serde(rename = "bic")]
    checksum_size: Option<u64>,
    #[serde(rename = "bim")]
    map_len: Option<u64>,
    #[serde(rename = "bni")]
    bundle: Option<u64>,
    #[serde(rename = "bno", default)]
    offset: u64,
    checksum: Option<String>,
    reference: Option<String>,
    #[serde(rename = "repo-size")]
    stored_len: Option<u64>,
    size: u64,
}

impl TargetFile {
    fn increment(&self, entry: &Entry<'_>, map_len: u64) -> Result<BlockIncrement> {
        let size = self.block_factor.and_then(|factor| factor.checked_mul(BLOCK_FACTOR));
        let block_size = size.filter(|size| (BLOCK_FACTOR..=MOST_BLOCK_BYTES).contains(size));
        let checksum_size = self.checksum_size.unwrap_or(CHECKSUM_BYTES.0);
        let is_whole = map_len <= self.stored_len.unwrap_or(self.size);
        match block_size {
            Some(block_size) if is_whole && (1..=CHECKSUM_BYTES.1).contains(&checksum_size) => {
                Ok(BlockIncrement { block_size, checksum_size: checksum_size as usize, map_len })
            }
            _ => Err(entry.wrong(format!("the blocks of {} have sizes that cannot be", entry.key))),
        }
    }
}

/// A name within the backup: of plain parts alone, under one of the two roots.
fn name(entry: &Entry<'_>) -> Result<String> {
    let parts = || entry.key.split('/');
    let is_below = matches!(parts().next(), Some("pg_data" | "pg_tblspc"));
    match is_below
        && parts().all(|part| !matches!(part, "" | "." | ".."))
        && !entry.key.contains('\0')
    {
        true => Ok(entry.key.to_owned()),
        false => Err(entry.wrong(format!("{:?} is no name within a backup", entry.key))),
    }
}
