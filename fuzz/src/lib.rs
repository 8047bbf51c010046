//! What the fuzz targets share: pages made of a few bytes, and printing with catalogs that exist
//! only here.
//!
//! A target says which bytes go where; this says what must hold: printing ends, in an error or in
//! text, it never touches the text that was there before, and no text is longer than PostgreSQL's
//! could be.
#![forbid(unsafe_code)]

mod catalog;

use pagemill_format::{BLOCK_SIZE, BlockBytes, Oid};
use pagemill_types::ScalarWriter;
use pagemill_types::output::{Lookups, ValueWriter};

pub use catalog::{Catalog, oids};

const BEFORE: &[u8] = b"before ";
/// PostgreSQL's limit (`MaxAllocSize`) and room for the last piece that went over it.
const LONGEST_TEXT: usize = 3 << 30;

fn assert_appended(out: &[u8]) {
    assert!(out.starts_with(BEFORE), "printing changed what was there before");
    assert!(out.len() < LONGEST_TEXT, "a text of {} bytes", out.len());
}

/// Prints `payload` with each of the writers.
pub fn print_with(writers: &[ScalarWriter], payload: &[u8]) {
    for write in writers {
        let mut out = BEFORE.to_vec();
        let _ = write(payload, &mut out);
        assert_appended(&out);
    }
}

/// Prints the payload of a value of a type that [`Catalog`] knows.
pub fn print_payload(oid: Oid, payload: &[u8]) {
    let mut catalog = Catalog;
    let Ok(found) = catalog.value_type(oid) else { return };
    let mut out = BEFORE.to_vec();
    let _ = ValueWriter::new(&mut catalog).write_payload(&found.output, payload, &mut out);
    assert_appended(&out);
}

/// Prints a value of a type that [`Catalog`] knows as it would lie in a tuple, header and all.
pub fn print_stored(oid: Oid, raw: &[u8]) {
    let mut catalog = Catalog;
    let Ok(found) = catalog.value_type(oid) else { return };
    let mut out = BEFORE.to_vec();
    let _ = ValueWriter::new(&mut catalog).write(&found.output, found.layout.len, raw, &mut out);
    assert_appended(&out);
}

/// A page of zeros with the first half of `data` at its start and the other at its end.
pub fn page_of(data: &[u8]) -> BlockBytes {
    let mut page = [0; BLOCK_SIZE];
    let data = &data[..data.len().min(BLOCK_SIZE)];
    let (start, end) = data.split_at(data.len() / 2);
    page[..start.len()].copy_from_slice(start);
    page[BLOCK_SIZE - end.len()..].copy_from_slice(end);
    page
}

/// As [`page_of`], under a header that is sound: the line pointers and tuples are what is damaged.
pub fn heap_page_of(data: &[u8]) -> BlockBytes {
    let mut page = page_of(data);
    let half = data.len().min(BLOCK_SIZE) / 2;
    let lower = half.clamp(24, 4096) as u16;
    let upper = (BLOCK_SIZE - half.min(4096)) as u16 & !7;
    for (at, word) in [(12, lower), (14, upper), (16, 8192), (18, 0x2004)] {
        page[at..at + 2].copy_from_slice(&u16::to_le_bytes(word));
    }
    page[10] &= 7;
    page[11] = 0;
    page
}
