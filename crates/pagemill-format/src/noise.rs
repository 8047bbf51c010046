//! Bytes that nothing compresses, for tests: the same ones every time, so that a failure can be
//! looked at again.

/// So many bytes of a pseudo-random sequence (xorshift).
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let next = |x: &u32| {
        let x = x ^ x << 13;
        let x = x ^ x >> 17;
        Some(x ^ x << 5)
    };
    std::iter::successors(Some(2_463_534_242), next).map(|x| (x >> 24) as u8).take(length).collect()
}
