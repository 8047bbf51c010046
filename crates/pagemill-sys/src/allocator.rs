//! The C library's allocator told to give freed memory back: `mallopt(3)`.
//!
//! Why: glibc raises the size from which blocks are mapped on their own with every such block that is freed, to 32 MiB. From then on
//! large buffers lie among small ones, and what is freed between them stays with the process: sorts that spill to keep within a
//! budget were seen to hold twice of it. Setting the size once ends that growth.

/// Maps blocks of at least so many bytes on their own from now on, so that they go back to the system when they are freed, and gives
/// back what is free at the end of the heap. It costs a system call for each of these blocks. False when the C library has no such
/// setting, or refuses it.
pub fn return_freed_memory(bytes: u32) -> bool {
    let Ok(bytes) = libc::c_int::try_from(bytes) else { return false };
    set_thresholds(bytes)
}

#[cfg(target_env = "gnu")]
fn set_thresholds(bytes: libc::c_int) -> bool {
    // SAFETY: mallopt takes two numbers, keeps no pointer, and locks what it changes (glibc, malloc/malloc.c); blocks that are in use
    // stay where and how they are.
    let set = |parameter| unsafe { libc::mallopt(parameter, bytes) == 1 };
    set(libc::M_MMAP_THRESHOLD) && set(libc::M_TRIM_THRESHOLD)
}

#[cfg(not(target_env = "gnu"))]
fn set_thresholds(_: libc::c_int) -> bool {
    false
}

#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_process;

    const MIB: usize = 1 << 20;

    #[test]
    fn large_blocks_are_mapped_on_their_own_also_after_larger_ones_were_freed() {
        let test = "allocator::tests::blocks_are_mapped_on_their_own";
        assert_eq!(own_process::run(test).unwrap().code(), Some(0));
    }

    #[test]
    fn blocks_are_mapped_on_their_own() {
        if !own_process::is_alone() {
            return;
        }
        drop(vec![1_u8; 8 * MIB]);
        let before = vec![1_u8; 4 * MIB];
        assert!(!is_mapped(&before), "glibc did not raise its threshold: this test shows nothing");
        assert!(return_freed_memory(64 << 10));
        drop(vec![1_u8; 8 * MIB]);
        assert!(is_mapped(&vec![1_u8; 4 * MIB]));
    }

    /// A block of its own begins with a page, of which its header takes two words.
    fn is_mapped(block: &[u8]) -> bool {
        block.as_ptr().addr() % 4096 == 16
    }
}
