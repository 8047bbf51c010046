//! What the tests of repositories share: archives made by hand, files in memory, and what comes out of a backup.
//!
//! A repository lies in `/r`.

use pagemill_io::MemoryFiles;

use super::*;

/// An archive of these files.
pub(super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, contents) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o} ", contents.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:07o} ").as_bytes());
        archive.extend_from_slice(&header);
        archive.extend_from_slice(contents);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

/// The storage with these files below `/r`.
pub(super) fn storage(files: &[(&str, Vec<u8>)]) -> Storage {
    let mut memory = MemoryFiles::new();
    for (path, bytes) in files {
        memory.insert(&Path::new("/r").join(path), bytes.clone());
    }
    Storage::new(std::sync::Arc::new(memory))
}

/// A backup of the repository in `/r`.
pub(super) fn opened(storage: &Storage, name: &str) -> Result<OpenBackup, String> {
    let repository = Repository::find(storage, Path::new("/r")).unwrap().expect("a repository");
    let name = name.parse().unwrap();
    repository.open(None, &name, &UnpackNotice::nobody()).map_err(|error| error.to_string())
}

/// What a file of a backup has.
pub(super) fn read(backup: &OpenBackup, name: &str) -> Result<Vec<u8>, String> {
    let read = backup.storage.read_file(&backup.directory.join(name), 1 << 20);
    read.map_err(|error| error.to_string())
}
