//! The files of a pgBackRest repository, of any contents: lists of backups, manifests, maps of blocks, and what is encrypted.
//!
//! What parses leads nowhere else: names stay within a backup, and each block lies within a super block of a known backup.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::pgbackrest::{
    ArchiveInfo, BackupInfo, BlockMap, BlockMapShape, Manifest, Passphrase,
};

/// Makes the last line's checksum right, so that what lies behind it is reached.
fn sealed(data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(data).ok()?;
    let text =
        format!("[backrest]\nbackrest-format=5\n{text}\n[backrest]\nbackrest-checksum=\"\"\n");
    let said = Manifest::parse(text.as_bytes()).err()?.to_string();
    let sum = said.split("its checksum is ").nth(1)?.split(',').next()?;
    Some(text.replace("checksum=\"\"", &format!("checksum=\"{sum}\"")))
}

fn parse(bytes: &[u8]) {
    let _ = (BackupInfo::parse(bytes), ArchiveInfo::parse(bytes));
    if let Ok(manifest) = Manifest::parse(bytes) {
        for file in manifest.files {
            assert!(file.reference < manifest.references.len());
            assert!(file.name.split('/').all(|part| !matches!(part, "" | "." | "..")));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    parse(data);
    if let Ok(text) = Passphrase::new(*b"flour").decrypt(data) {
        parse(&text);
    }
    if let Some(sealed) = sealed(data) {
        parse(sealed.as_bytes());
    }
    let blocks = u64::from(data.first().copied().unwrap_or(1));
    let shape =
        BlockMapShape { len: blocks * 8192, block_size: 8192, checksum_size: 6, references: 4 };
    if let Ok(map) = BlockMap::parse(shape, data.get(1..).unwrap_or_default()) {
        for block in 0..blocks {
            let (place, of) = map.place(block).expect("it has as many blocks");
            assert!(place.start < of.len && of.reference < 4);
        }
    }
});
