//! Values of variable length: any header, decompression in line, and TOAST pointers to any bytes.
//!
//! What is decompressed has the size that was announced; a failure leaves nothing behind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::varlena::{Varlena, decompress, decompress_stored, total_len};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (bytes, stored) = input;
    let len = total_len(bytes);
    let mut out = Vec::new();
    match Varlena::parse(bytes) {
        Ok(Varlena::Plain(payload)) => assert!(payload.len() < len.unwrap()),
        Ok(Varlena::Compressed { raw_bytes, method, data }) => {
            let expected = decompress(method, data, raw_bytes, &mut out).map_or(0, |()| raw_bytes);
            assert_eq!(out.len(), expected);
        }
        Ok(Varlena::External(pointer)) => {
            let done = decompress_stored(&pointer, stored, &mut out);
            assert_eq!(out.len(), done.map_or(0, |()| pointer.raw_size as usize - 4));
            assert!(pointer.chunk_count() <= pointer.stored_size.div_ceil(1996));
        }
        Err(_) => {}
    }
});
