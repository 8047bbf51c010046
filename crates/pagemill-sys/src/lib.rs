#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod aligned_buffer;
pub mod aligned_part;

pub use aligned_buffer::{ALIGNMENT, AlignedBuffer};
pub use aligned_part::AlignedPart;
