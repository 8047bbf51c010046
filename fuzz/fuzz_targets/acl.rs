//! Access privileges of any bytes, of roles with and without a name.
//!
//! Any 12 or 16 bytes are a privilege; anything else is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::acl::write_aclitem;
use pagemill_types::output::Lookups;

use pagemill_fuzz::Catalog;

fuzz_target!(|payload: &[u8]| {
    let mut out = Vec::new();
    let done = write_aclitem(payload, &mut |oid, out| Catalog.write_role(oid, out), &mut out);
    assert_eq!(done.is_ok(), matches!(payload.len(), 12 | 16));
});
