//! Whether standard input and output were open when the process began.
//!
//! Rust opens `/dev/null` in the place of standard streams that are closed, before `main` is called. What is printed is
//! then lost and nobody is told. So they are looked at before that, by a function that the loader calls.
//!
//! Invariant: what is told is how the process began, whatever was opened since.

use std::sync::atomic::{AtomicBool, Ordering};

static INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    for (descriptor, closed) in [(0, &INPUT_CLOSED), (1, &OUTPUT_CLOSED)] {
        // SAFETY: the call asks for the flags of a descriptor and takes no pointer; one that is closed is an error.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        closed.store(flags == -1, Ordering::Relaxed);
    }
}

// SAFETY: the section holds functions that the loader calls before `main`, with arguments that this one passes over;
// it uses nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// True when the process was started with its standard input closed.
pub fn standard_input_was_closed() -> bool {
    std::hint::black_box(&LOOK);
    INPUT_CLOSED.load(Ordering::Relaxed)
}

/// True when the process was started with its standard output closed.
pub fn standard_output_was_closed() -> bool {
    std::hint::black_box(&LOOK);
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_a_test_are_open() {
        assert!(!standard_input_was_closed() && !standard_output_was_closed());
    }
}
