//! The files by which pgBackRest finds its way in a repository: what backups there are, which files each of them has and
//! where, and where the blocks of a file lie that is kept by blocks.
//!
//! ```text
//! backup.info   archive.info                 a stanza's backups, and the clusters they are of: InfoFile
//! LABEL/backup.manifest                      the files of one backup: Manifest
//! LABEL/…/FILE.pgbi, LABEL/bundle/ID         blocks of a file, and a map of them: BlockMap
//! ```
//!
//! All of them may be encrypted, each kind by a passphrase that another one has ([`Cipher`]).
//!
//! Invariant: a file whose checksum is wrong, or whose format is newer than the one that is known, is an error, and nothing of it
//! is believed.
//!
//! Source: `src/info/` and `src/command/backup/` of pgBackRest 2.45 to 2.59, whose repository format is 5.

mod block_map;
mod cipher;
mod info_file;
mod manifest;
mod stanza_info;

pub use block_map::{BlockMap, BlockMapShape, BlockPlace, SuperBlock};
pub use cipher::{CIPHER_BLOCK, Cipher, CipherHeader, Passphrase, contents_len, is_encrypted};
pub use manifest::{BlockIncrement, Manifest, ManifestFile, StoredBy};
pub use stanza_info::{ArchiveInfo, BackupEntry, BackupInfo, BackupKind, ClusterEntry};

use sha1::{Digest as _, Sha1};

/// SHA-1 of the contents of a file, as manifests have it.
#[derive(Debug, Clone, Default)]
pub struct ContentDigest(Sha1);

impl ContentDigest {
    /// Takes the next bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digits of all that was taken in.
    pub fn digits(self) -> String {
        digits(self.0)
    }
}

fn digits(digest: Sha1) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
