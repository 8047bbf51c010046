//! `aclitem`, printed as `aclitemout` prints it: `grantee=privileges/grantor`.
//!
//! ```text
//! up to 15  grantee (OID) | grantor (OID) | 32 bits: privileges, then grant options
//! from 16   grantee (OID) | grantor (OID) | 64 bits: privileges, then grant options
//! ```
//!
//! The length tells the two apart. Grantee 0 is PUBLIC, and prints as nothing. A role that no
//! longer exists prints as its OID.
//!
//! Role names are quoted unless every byte is an ASCII letter, digit or underscore. Earlier minor
//! versions (`putid` before it had `is_safe_acl_char`) asked the server's locale about bytes above
//! 127, with the same answer wherever the locale's encoding is UTF-8.
//!
//! Sources: `src/include/utils/acl.h`, `src/include/nodes/parsenodes.h`,
//! `src/backend/utils/adt/acl.c` (`aclitemout`, `putid`), PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::ids::Oid;
use pagemill_format::reader::Reader;

const STRUCTURE: &str = "aclitem";

/// The letter of each privilege, from the lowest bit. 14 ends with `c`, 15 and 16 end with `A`.
const PRIVILEGES: &[u8; 15] = b"arwdDxtXUCTcsAm";

/// Appends an `aclitem` as `aclitemout` prints it. `role_name` appends the name of a role as
/// stored, and says whether there is such a role.
///
/// # Errors
/// When the value has neither of the two lengths, and those of `role_name`.
pub fn write_aclitem(
    value: &[u8],
    role_name: &mut dyn FnMut(Oid, &mut Vec<u8>) -> Result<bool>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut reader = Reader::new(STRUCTURE, value);
    let (grantee, grantor) = (Oid(reader.u32()?), Oid(reader.u32()?));
    let (privileges, options) = match value.len() {
        12 => {
            let bits = reader.u32()?;
            (bits & 0xFFFF, bits >> 16)
        }
        16 => (reader.u32()?, reader.u32()?),
        len => return Err(Error::corrupt(STRUCTURE, 0, format!("{len} bytes, not 12 or 16"))),
    };
    if grantee.is_valid() {
        write_role(grantee, role_name, out)?;
    }
    out.push(b'=');
    for (bit, &letter) in PRIVILEGES.iter().enumerate() {
        if privileges & (1 << bit) != 0 {
            out.push(letter);
        }
        if options & (1 << bit) != 0 {
            out.push(b'*');
        }
    }
    out.push(b'/');
    write_role(grantor, role_name, out)
}

/// Appends a role's name, quoted where needed, or its OID when it has none.
fn write_role(
    role: Oid,
    role_name: &mut dyn FnMut(Oid, &mut Vec<u8>) -> Result<bool>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut name = Vec::with_capacity(64);
    if !role_name(role, &mut name)? {
        out.extend_from_slice(itoa::Buffer::new().format(role.0).as_bytes());
        return Ok(());
    }
    let safe = name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if safe {
        out.extend_from_slice(&name);
        return Ok(());
    }
    out.push(b'"');
    for byte in name {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::payload;
    use proptest::prelude::*;

    fn text(value: &[u8]) -> Result<String> {
        let mut role_name = |role: Oid, name: &mut Vec<u8>| {
            let found = match role.0 {
                10 => "postgres",
                0x408D => "bob",
                0x408E => "Bob Smith",
                0x408F => "quo\"te",
                0x4090 => "rölé",
                0x4092 => "a-b",
                0x4093 => "under_9",
                _ => return Ok(false),
            };
            name.extend_from_slice(found.as_bytes());
            Ok(true)
        };
        let mut out = Vec::new();
        write_aclitem(value, &mut role_name, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn items_of_a_real_server_print_as_it_prints_them() {
        let known = [
            ("000000000a00000002000000", "=r/postgres"),
            ("8d4000000a0000000f000000", "bob=arwd/postgres"),
            ("8e4000008d40000080008000", r#""Bob Smith"=X*/bob"#),
            ("8f4000009040000006000200", r#""quo""te"=r*w/"rölé""#),
            ("904000008f40000000010000", r#""rölé"=U/"quo""te""#),
            ("9140000091400000000e0006", "16529=C*T*c/16529"),
            ("000000008d40000000000000", "=/bob"),
            ("0a0000000a000000ff3f0000", "postgres=arwdDxtXUCTcsA/postgres"),
            ("8d40000092400000ff3fff3f", r#"bob=a*r*w*d*D*x*t*X*U*C*T*c*s*A*/"a-b""#),
            ("934000008d40000004000000", "under_9=w/bob"),
        ];
        for (value, expected) in known {
            assert_eq!(text(&payload(value)).unwrap(), expected);
        }
    }

    #[test]
    fn items_of_16_bytes_print_as_the_server_prints_them() {
        let known = [
            ("0a0000000a000000ff7f000000000000", "postgres=arwdDxtXUCTcsAm/postgres"),
            ("8d40000092400000ff7f0000ff7f0000", r#"bob=a*r*w*d*D*x*t*X*U*C*T*c*s*A*m*/"a-b""#),
            ("000000008d4000000040000000400000", "=m*/bob"),
        ];
        for (value, expected) in known {
            assert_eq!(text(&payload(value)).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(value: Vec<u8>) {
            prop_assert_eq!(text(&value).is_ok(), matches!(value.len(), 12 | 16));
        }
    }
}
