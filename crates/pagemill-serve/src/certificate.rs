//! What of a certificate a client binds its proof to: `tls-server-end-point`.
//!
//! ```text
//! SEQUENCE { tbsCertificate, SEQUENCE { OID of the signature's algorithm, … }, signature }
//! ```
//!
//! The digest is that of the certificate by the hash of its signature's algorithm, SHA-256 in place of MD5 and SHA-1. An algorithm that
//! names no hash (Ed25519), or names it elsewhere (RSA-PSS), gives none: older clients of PostgreSQL cannot compute one either, and
//! binding is then not offered.
//!
//! Invariant: arbitrary bytes give a digest or none. Source: RFC 5929, section 4.1; RFC 5280, section 4.1; RFC 8017 and RFC 5758 for the
//! numbers of the algorithms; `be_tls_get_certificate_hash` in `src/backend/libpq/be-secure-openssl.c`, PostgreSQL 14 to 18.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Algorithms of signatures, as the bytes of their numbers, and their hashes.
const HASHES: [(&[u8], &Algorithm); 9] = [
    // 1.2.840.113549.1.1: md5, sha1, sha256, sha384, sha512WithRSAEncryption.
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 4], &SHA256),
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 5], &SHA256),
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 11], &SHA256),
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 12], &SHA384),
    (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 13], &SHA512),
    // 1.2.840.10045.4: ecdsa-with-SHA1, SHA256, SHA384, SHA512.
    (&[0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 1], &SHA256),
    (&[0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2], &SHA256),
    (&[0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 3], &SHA384),
    (&[0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 4], &SHA512),
];

/// What clients bind to that see this certificate; `None` where its algorithm names no hash.
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = signature_algorithm(certificate)?;
    let (_, hash) = HASHES.iter().find(|(known, _)| *known == algorithm)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (content, _) = element(certificate, SEQUENCE)?;
    let (_, behind) = element(content, SEQUENCE)?;
    let (algorithm, _) = element(behind, SEQUENCE)?;
    Some(element(algorithm, OBJECT_IDENTIFIER)?.0)
}

/// The content of the first element, and what stands behind it; `None` where that has another tag, or is cut.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    // Up to 127 in itself; above, so many bytes of a length follow.
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of a certificate, as far as it is looked at.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let nested = |tag: u8, content: &[u8]| {
            let length = [0x82, 0, content.len() as u8];
            [&[tag][..], &length, content].concat()
        };
        let algorithm = nested(SEQUENCE, &[&nested(6, algorithm)[..], &[5, 0]].concat());
        let content = [nested(SEQUENCE, &[2, 1, 0]), algorithm, nested(3, &[0])].concat();
        nested(SEQUENCE, &content)
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let lengths =
            HASHES.map(|(algorithm, _)| end_point(&certificate(algorithm)).unwrap().len());
        assert_eq!(lengths, [32, 32, 32, 48, 64, 32, 32, 48, 64]);
        // Ed25519.
        assert_eq!(end_point(&certificate(&[0x2B, 0x65, 0x70])), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0_usize..40, by: u8) {
            let _ = end_point(&bytes);
            let mut damaged = certificate(HASHES[2].0);
            if let Some(byte) = damaged.get_mut(at) {
                *byte = by;
            }
            let _ = end_point(&damaged);
        }
    }
}
