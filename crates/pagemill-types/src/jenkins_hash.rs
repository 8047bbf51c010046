//! Jenkins' hash of any bytes, as PostgreSQL has it: 64 bits with a seed, of which the lower half is the hash of 32 bits where the seed
//! is 0.
//!
//! Invariant: the same on every machine; a number of four bytes hashes as its bytes do, the lowest first.
//!
//! Source: `src/common/hashfn.c`, `src/include/common/hashfn.h`, PostgreSQL 14 to 18.

/// The hash of bytes with a seed (`hash_bytes_extended`).
pub fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(bytes.len() as u32).wrapping_add(3_923_095);
    let mut state = [start; 3];
    if seed != 0 {
        state[0] = start.wrapping_add((seed >> 32) as u32);
        state[1] = start.wrapping_add(seed as u32);
        mix(&mut state);
    }
    let mut chunks = bytes.chunks_exact(12);
    for chunk in &mut chunks {
        add(&mut state, chunk, 0);
        mix(&mut state);
    }
    // The lowest byte of the last word was the length's, which went in at the start.
    add(&mut state, chunks.remainder(), 8);
    finish(&mut state);
    u64::from(state[1]) << 32 | u64::from(state[2])
}

/// Adds up to twelve bytes as three words, the last of them shifted.
fn add(state: &mut [u32; 3], bytes: &[u8], last_shift: u32) {
    for ((word, bytes), shift) in state.iter_mut().zip(bytes.chunks(4)).zip([0, 0, last_shift]) {
        let mut value = [0; 4];
        for (to, from) in value.iter_mut().zip(bytes) {
            *to = *from;
        }
        *word = word.wrapping_add(u32::from_le_bytes(value) << shift);
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, by: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &u32, by: u32| *x = (*x ^ *y).wrapping_sub(y.rotate_left(by));
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
}
