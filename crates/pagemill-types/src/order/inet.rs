//! The order of inet and cidr: by the network as far as both have one, then shorter prefixes first,
//! then the whole address. IPv4 comes before IPv6.
//!
//! Invariant: the address cut to its prefix, as a number, is as ordered as the values where it differs.
//! Source: `network_cmp_internal` in `src/backend/utils/adt/network.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

/// The address family of IPv6 in a value (`PGSQL_AF_INET6`).
const IPV6: u8 = 3;

/// A value's parts, the address in the upper bits.
struct Parts {
    is_ipv6: bool,
    prefix: u32,
    address: u128,
}

impl Parts {
    fn read(value: &[u8]) -> Self {
        let [family, prefix] = value.first_chunk().copied().unwrap_or_default();
        let mut address = [0; 16];
        for (to, from) in address.iter_mut().zip(value.get(2..).unwrap_or_default()) {
            *to = *from;
        }
        let is_ipv6 = family == IPV6;
        let longest = if is_ipv6 { 128 } else { 32 };
        let prefix = u32::from(prefix).min(longest);
        Self { is_ipv6, prefix, address: u128::from_be_bytes(address) }
    }

    /// The address with all bits behind the first `bits` cleared.
    fn network(&self, bits: u32) -> u128 {
        if bits == 0 { 0 } else { self.address & u128::MAX << (128 - bits) }
    }
}

pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (Parts::read(a), Parts::read(b));
    let common = a.prefix.min(b.prefix);
    let families = a.is_ipv6.cmp(&b.is_ipv6);
    families
        .then_with(|| a.network(common).cmp(&b.network(common)))
        .then_with(|| a.prefix.cmp(&b.prefix))
        .then_with(|| a.address.cmp(&b.address))
}

/// The family, then the network; for IPv4 there is room for the prefix too.
pub(super) fn abbreviate(value: &[u8]) -> u64 {
    let parts = Parts::read(value);
    let network = parts.network(parts.prefix);
    if parts.is_ipv6 {
        1 << 63 | (network >> 65) as u64
    } else {
        (network >> 96) as u64 * 64 + u64::from(parts.prefix)
    }
}
