#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod aligned_buffer;
pub mod allocator;
pub mod cachestat;
pub mod collation;
pub mod extents;
mod fault_table;
pub mod interrupt;
pub mod mapping;
pub mod math;
pub mod mount_namespace;
#[cfg(test)]
mod own_process;
pub mod parent_death;
pub mod posix_fallocate;
pub mod prefetch;
pub mod readahead;
pub mod resource_usage;
pub mod ring;
pub mod ring_poll;
pub mod ring_trial;
pub mod select;
mod sigbus;
pub mod standard_streams;
pub mod writable_mapping;
pub mod write_back;

pub use aligned_buffer::{ALIGNMENT, AlignedBuffer};
pub use allocator::return_freed_memory;
pub use cachestat::{CacheStat, cachestat};
pub use collation::{LocaleClass, LocaleCollation, libc_version};
pub use extents::{Extent, extents, fragments};
pub use interrupt::{
    RemovedOnSignal, end_by, interrupted, interrupted_by, remove_on_signal,
    survive_file_size_limit, take_interrupt_key, watch_interrupt_key, watch_interrupts,
};
pub use mapping::{Faulted, LISTED_PAGES, MAX_MAPPINGS, MapAdvice, Mapping};
pub use math::MathFunction;
pub use mount_namespace::{mount_memory_for_thread, own_mounts_for_thread};
pub use parent_death::{EndSignal, end_with_parent};
pub use posix_fallocate::posix_fallocate;
pub use prefetch::prefetch;
pub use readahead::readahead;
pub use resource_usage::{ResourceUsage, UsageOf, resource_usage};
pub use ring::{Completed, Ring, RingFile, RingFull, Submission};
pub use ring_poll::RingPoll;
pub use ring_trial::{RingOffer, try_ring};
pub use select::{DescriptorSet, select_readable};
pub use standard_streams::{standard_input_was_closed, standard_output_was_closed};
pub use writable_mapping::WritableMapping;
pub use write_back::{WriteBack, write_back};
pub mod aligned_part;

pub use aligned_part::AlignedPart;
