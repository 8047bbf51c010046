//! Whether an address is within a network: what a BRIN index keeps of the addresses in a range of blocks is a network that has all of them.
//!
//! ```text
//! family 1 | length of the mask in bits 1 | address 4 or 16
//! ```
//!
//! Invariant: no is said only of payloads that can be read; of others nothing is known.
//!
//! Source: `network_supeq` and `bitncmp` in `src/backend/utils/adt/`, `src/include/utils/inet.h`, PostgreSQL 14 to 18.

/// Whether a network, as the payload of an `inet`, has an address of another within itself, or is the same.
pub fn may_cover(network: &[u8], address: &[u8]) -> bool {
    let ([family, mask, network @ ..], [own_family, own_mask, address @ ..]) = (network, address)
    else {
        return true;
    };
    if family != own_family || mask > own_mask {
        return false;
    }
    let (whole, rest) = (usize::from(mask / 8), mask % 8);
    let (Some(a), Some(b)) = (network.split_at_checked(whole), address.split_at_checked(whole))
    else {
        return true;
    };
    let cut = |bytes: &[u8]| bytes.first().map(|byte| u16::from(*byte) >> (8 - rest));
    a.0 == b.0 && (rest == 0 || cut(a.1) == cut(b.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_network_covers_what_begins_with_its_bits() {
        let of = |mask, last: [u8; 4]| [&[2, mask][..], &last].concat();
        let network = of(20, [10, 0, 16, 0]);
        assert!(may_cover(&network, &of(32, [10, 0, 31, 255])));
        assert!(may_cover(&network, &of(20, [10, 0, 16, 5])), "the same network");
        assert!(!may_cover(&network, &of(32, [10, 0, 32, 0])));
        assert!(!may_cover(&network, &of(19, [10, 0, 16, 0])), "a wider one");
        assert!(may_cover(&of(0, [0; 4]), &of(32, [200, 1, 2, 3])));
        let other = [&[3, 128][..], &[0; 16]].concat();
        assert!(!may_cover(&of(0, [0; 4]), &other), "of another family");
        assert!(may_cover(&[], &network), "one that cannot be read");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(network: Vec<u8>, address: Vec<u8>) {
            may_cover(&network, &address);
            prop_assert!(may_cover(&network, &network));
        }
    }
}
