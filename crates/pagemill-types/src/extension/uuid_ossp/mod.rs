//! uuid-ossp: UUIDs of fixed value, and those made of a name and the namespace that it is in.
//!
//! What makes UUIDs of the time, of the machine or of random numbers is not here: no two servers give the same.
//!
//! Invariant: a name's bytes are those of UTF-8. The result does not depend on the library that the server was built with.
//! Source: `contrib/uuid-ossp/uuid-ossp.c`, RFC 4122, PostgreSQL 14 to 18.

use md5::{Digest as _, Md5};
use pagemill_format::Error as FormatError;
use sha1::Sha1;

use super::arguments::{payload, text};
use super::call::{Argument, CallError, ExtensionFunction, Value, strict};

/// What the namespaces end with.
const NAMESPACES: [u8; 12] = *b"\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8";
const VERSION_BYTE: usize = 6;
const VARIANT_BYTE: usize = 8;

/// The functions of the library `uuid-ossp`. All are strict.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("uuid_nil", |_, _| Ok(Value::Payload(vec![0; 16]))),
    strict("uuid_ns_dns", |_, _| Ok(namespace(0x10))),
    strict("uuid_ns_url", |_, _| Ok(namespace(0x11))),
    strict("uuid_ns_oid", |_, _| Ok(namespace(0x12))),
    strict("uuid_ns_x500", |_, _| Ok(namespace(0x14))),
    strict("uuid_generate_v3", |_, a| {
        let digest: [u8; 16] = Md5::digest(named(a)?).into();
        Ok(with_version(digest, 3))
    }),
    strict("uuid_generate_v5", |_, a| {
        let digest: [u8; 20] = Sha1::digest(named(a)?).into();
        let [start @ .., _, _, _, _] = digest;
        Ok(with_version(start, 5))
    }),
];

fn namespace(last: u8) -> Value {
    Value::Payload([&[0x6b, 0xa7, 0xb8, last], &NAMESPACES[..]].concat())
}

/// A namespace and a name in it.
fn named(arguments: &[Argument<'_>]) -> Result<Vec<u8>, CallError> {
    let namespace = payload(arguments, 0)?;
    if namespace.len() != 16 {
        return Err(FormatError::corrupt("uuid", 0, "not of 16 bytes").into());
    }
    Ok([namespace, text(arguments, 1)?.as_bytes()].concat())
}

fn with_version(mut uuid: [u8; 16], version: u8) -> Value {
    uuid[VERSION_BYTE] = uuid[VERSION_BYTE] & 0x0F | version << 4;
    uuid[VARIANT_BYTE] = uuid[VARIANT_BYTE] & 0x3F | 0x80;
    Value::Payload(uuid.to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bytea::write_uuid;
    use crate::extension::extension_tests::called_in as called;
    use crate::printed;

    const DNS: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

    fn uuid(symbol: &str, arguments: &[Argument<'_>]) -> String {
        match called("$libdir/uuid-ossp", symbol, arguments) {
            Ok(Value::Payload(payload)) => printed(write_uuid, &payload),
            other => panic!("{other:?}"),
        }
    }

    /// Values of a PostgreSQL 15 server.
    #[test]
    fn uuids_are_those_of_the_server() {
        assert_eq!(uuid("uuid_nil", &[]), "00000000-0000-0000-0000-000000000000");
        assert_eq!(uuid("uuid_ns_dns", &[]), DNS);
        assert_eq!(uuid("uuid_ns_url", &[]), DNS.replace("b810", "b811"));
        assert_eq!(uuid("uuid_ns_oid", &[]), DNS.replace("b810", "b812"));
        assert_eq!(uuid("uuid_ns_x500", &[]), DNS.replace("b810", "b814"));
        let Ok(Value::Payload(dns)) = called("uuid-ossp", "uuid_ns_dns", &[]) else { panic!() };
        let arguments = [Argument::Payload(&dns), Argument::Text("www.widgets.com")];
        assert_eq!(uuid("uuid_generate_v3", &arguments), "3d813cbb-47fb-32ba-91df-831e1593ac29");
        assert_eq!(uuid("uuid_generate_v5", &arguments), "21f7f8de-8051-5b89-8680-0195ef798b6a");
        let short = [Argument::Payload(&dns[1..]), Argument::Text("a")];
        assert!(called("uuid-ossp", "uuid_generate_v5", &short).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), name: String) {
            let arguments = [Argument::Payload(&bytes), Argument::Text(&name)];
            for one in FUNCTIONS {
                let _ = called("uuid-ossp", one.symbol, &arguments);
            }
        }
    }
}
